//go:build unix

package sshfwd

import (
	"context"
	"net"
)

// defaultAgent: without SSH_AUTH_SOCK there is no agent.
const defaultAgent = ""

func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

// isPipe: there are no named pipes of Windows' kind.
func isPipe(string) bool { return false }
