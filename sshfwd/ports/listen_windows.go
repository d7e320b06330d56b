package ports

import (
	"context"
	"errors"
	"io/fs"
	"net"
)

// listenUnix returns an error: on Windows, a socket's mode does not keep other users out.
func listenUnix(context.Context, string, fs.FileMode, bool) (net.Listener, error) {
	return nil, errors.New("unix sockets are not forwarded from Windows")
}
