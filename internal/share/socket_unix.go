//go:build unix

package share

import (
	"context"
	"net"
	"os"

	"gpg-bridge/internal/private"
)

// listen is called with the lock held: a socket that is there is a dead one's.
func (d *Dir) listen(id string) (net.Listener, error) {
	path, err := d.files.SocketPath(id + socketSuffix)
	if err != nil {
		return nil, err
	}
	if err := d.files.Remove(id + socketSuffix); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// dial connects to whoever listens, if it is a process of the user's.
func (d *Dir) dial(ctx context.Context, id string) (net.Conn, error) {
	path, err := d.files.SocketPath(id + socketSuffix)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, ErrNobody
	}
	if err := private.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
