package login

import (
	"context"
	"net"
	"strings"

	"github.com/Microsoft/go-winio"
)

// DialAgent connects to the ssh-agent at a named pipe, or at a Unix socket, which Windows
// has had since 2018.
func DialAgent(ctx context.Context, path string) (net.Conn, error) {
	if isPipe(path) {
		return winio.DialPipeContext(ctx, strings.ReplaceAll(path, "/", `\`))
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", path)
}

func isPipe(path string) bool {
	return strings.HasPrefix(strings.ReplaceAll(path, "/", `\`), `\\.\pipe\`)
}
