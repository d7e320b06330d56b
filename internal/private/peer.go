package private

import (
	"fmt"
	"net"
)

// A PeerError says that another user's process is at the other end of a Unix
// socket.
type PeerError struct{ UID int }

func (e *PeerError) Error() string {
	return fmt.Sprintf("the process that listens there is another user's (%d)", e.UID)
}

// Hint says what to do.
func (e *PeerError) Hint() string {
	return "run gpg-bridge as that user, or see who put a socket there"
}

// CheckPeer makes sure that the process at the other end of a Unix socket is
// root's or of the user of this one; the error is a *PeerError if it is not. Of a
// connection that was made, it is the process that listened; of one that was
// accepted, the process that connected (SO_PEERCRED in unix(7); LOCAL_PEERCRED
// in macOS's unix(4)). Unlike the owner of a path, it cannot be exchanged
// meanwhile.
//
// Other connections, and systems that do not tell, pass: nil.
func CheckPeer(conn net.Conn) error {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return fmt.Errorf("the owner of the socket: %w", err)
	}
	return checkPeer(raw)
}
