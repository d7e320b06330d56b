package sshfwd

import (
	"context"
	"errors"
	"io/fs"
	"net"
)

// listenUnix is refused: Windows does not keep other users off a socket by its
// mode.
func listenUnix(context.Context, string, fs.FileMode, bool) (net.Listener, error) {
	return nil, errors.New("unix sockets are not forwarded from Windows")
}
