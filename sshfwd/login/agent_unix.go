//go:build unix

package login

import (
	"context"
	"net"
)

// DialAgent connects to the ssh-agent at a Unix socket.
func DialAgent(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// isPipe is always false: only Windows has such named pipes.
func isPipe(string) bool { return false }
