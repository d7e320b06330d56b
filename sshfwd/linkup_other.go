//go:build !linux

package sshfwd

import (
	"context"
	"net"
)

// isUp is always true: the system is not asked.
func isUp(context.Context, *net.TCPConn) bool { return true }
