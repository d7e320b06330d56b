//go:build linux || darwin

package ports

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"gpg-bridge/internal/usertext"
)

// listenUnix listens on a Unix socket whose mode has none of the bits in mask. With
// unlink, a socket at that path is removed first; another kind of file never
// is. The listener removes its socket when it is closed.
//
// The umask is the whole process's, so the mode is set on the descriptor before bind
// where the system respects that (Linux), and after bind elsewhere.
func listenUnix(ctx context.Context, path string, mask fs.FileMode, unlink bool) (net.Listener, error) {
	mode := 0o777 &^ mask
	if info, err := os.Lstat(path); unlink && err == nil && info.Mode().Type() == fs.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove %q: %w", path, usertext.RootCause(err))
		}
	}
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		return conn.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), uint32(mode)) })
	}}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("cannot bind to path %q: %w", path, usertext.RootCause(err))
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect %q: %w", path, usertext.RootCause(err))
	}
	return l, nil
}
