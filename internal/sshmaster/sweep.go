package sshmaster

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"gpg-bridge/internal/private"
)

// sweep removes the control sockets of ours that an ssh which was killed has left.
func sweep(ctx context.Context, dir *private.Dir) {
	entries, err := os.ReadDir(dir.Path())
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.Type()&fs.ModeSocket == 0 || len(name) != len(privatePrefix)+letters || !strings.HasPrefix(name, privatePrefix) {
			continue
		}
		path, err := dir.SocketPath(name)
		if err != nil {
			continue
		}
		conn, err := (&net.Dialer{Timeout: sweepPatience}).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = dir.Remove(name)
		}
	}
}
