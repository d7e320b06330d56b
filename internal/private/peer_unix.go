//go:build linux || darwin

package private

import (
	"fmt"
	"os"
	"syscall"
)

func checkPeer(conn syscall.RawConn) error {
	var uid int
	var failed error
	if err := conn.Control(func(fd uintptr) { uid, failed = peerUID(int(fd)) }); err != nil {
		failed = err
	}
	if failed != nil {
		return fmt.Errorf("the owner of the socket: %w", failed)
	}
	if uid != 0 && uid != os.Geteuid() {
		return &PeerError{UID: uid}
	}
	return nil
}
