package private

import (
	"fmt"
	"net"
)

// A PeerError says that another user's process is at the other end of a Unix socket
// or named pipe.
type PeerError struct {
	UID int
	SID string // on Windows, where there is no UID
}

func (e *PeerError) Error() string {
	if e.SID != "" {
		return fmt.Sprintf("the process that listens there is another user's (%s)", e.SID)
	}
	return fmt.Sprintf("the process that listens there is another user's (%d)", e.UID)
}

// Hint says what to do.
func (e *PeerError) Hint() string {
	return "run gpg-bridge as that user, or see who put a socket there"
}

// CheckPeer returns a *PeerError unless the process at the other end of a Unix socket is
// root's or the user's own. If we connected, that is the process that called listen(2); if
// we accepted, the one that connected (SO_PEERCRED in unix(7); LOCAL_PEERCRED in macOS's
// unix(4)). Unlike the owner of a path, it cannot change meanwhile.
//
// A named pipe on Windows must have been made by the user, an administrator or the
// system: anybody may take a name that is free.
//
// For other connections, and on systems that do not tell the peer, it returns nil.
func CheckPeer(conn net.Conn) error {
	if pipe, ok := conn.(interface{ Fd() uintptr }); ok {
		return checkPipe(pipe.Fd())
	}
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
