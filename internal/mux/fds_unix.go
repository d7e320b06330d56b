//go:build unix

package mux

import (
	"net"
	"os"
	"syscall"
)

// sendFile gives the other process its own descriptor of file.
func sendFile(conn *net.UnixConn, file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		_, _, failed = conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(int(fd)), nil)
	})
	if err != nil {
		return err
	}
	return failed
}
