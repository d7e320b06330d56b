package sshfwd

import (
	"context"
	"net"
	"strings"

	"github.com/Microsoft/go-winio"
)

// defaultAgent is the pipe of Windows' own ssh-agent service.
const defaultAgent = `\\.\pipe\openssh-ssh-agent`

// dialAgent connects to a named pipe, or to a Unix socket, which Windows has
// since 2018.
func dialAgent(ctx context.Context, path string) (net.Conn, error) {
	if isPipe(path) {
		return winio.DialPipeContext(ctx, strings.ReplaceAll(path, "/", `\`))
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

func isPipe(path string) bool {
	return strings.HasPrefix(strings.ReplaceAll(path, "/", `\`), `\\.\pipe\`)
}
