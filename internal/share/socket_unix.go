//go:build unix

package share

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// listen listens on the target's socket. It is called with the lock held, so a socket that
// is there is a dead process's. Closing the listener leaves the socket's file, which file
// identifies.
func (d *Dir) listen(id string) (listener net.Listener, file fs.FileInfo, err error) {
	files, err := d.current()
	if err != nil {
		return nil, nil, err
	}
	path, err := files.SocketPath(id + socketSuffix)
	if err != nil {
		return nil, nil, err
	}
	if err := files.Remove(id + socketSuffix); err != nil {
		return nil, nil, err
	}
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	unix.SetUnlinkOnClose(false) // the path may be another's by then
	if err = os.Chmod(path, 0o600); err == nil {
		file, err = os.Lstat(path)
	}
	if err != nil {
		_ = unix.Close()
		return nil, nil, err
	}
	return unix, file, nil
}

// removeSocket removes the socket if it is still this one.
func (d *Dir) removeSocket(id string, file fs.FileInfo) {
	if files, err := d.current(); err == nil && d.isSocket(id, file) {
		_ = files.Remove(id + socketSuffix)
	}
}

// isSocket reports whether this is the socket that others find. While somebody listens on
// a socket, no other file gets its inode.
func (d *Dir) isSocket(id string, file fs.FileInfo) bool {
	named, err := os.Lstat(filepath.Join(d.path, id+socketSuffix))
	return err == nil && os.SameFile(named, file)
}

// dial connects to the target's bridge, which must be a process of the user's. The error is
// ErrNobody if nobody listens.
func (d *Dir) dial(ctx context.Context, id string) (net.Conn, error) {
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	path, err := files.SocketPath(id + socketSuffix)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	return checkDialed(ctx, conn, err)
}
