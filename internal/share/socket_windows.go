package share

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// pipeName: pipes are in one namespace for all users, so the user is in the
// name; the descriptor keeps others out.
func pipeName(id string) (name, user string, err error) {
	token, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", "", err
	}
	user = token.User.Sid.String()
	return `\\.\pipe\gpg-bridge-` + user + "-" + id, user, nil
}

// listen makes the first instance of the pipe, for the user and nobody else.
// Without buffers a write would wait until the other side reads, and the last
// status would be lost on who does something else (CreateNamedPipe, Remarks).
func (d *Dir) listen(id string) (net.Listener, error) {
	name, user, err := pipeName(id)
	if err != nil {
		return nil, err
	}
	return winio.ListenPipe(name, &winio.PipeConfig{
		SecurityDescriptor: "D:P(A;;GA;;;" + user + ")",
		InputBufferSize:    maxRequest,
		OutputBufferSize:   maxStatus,
	})
}

func (d *Dir) dial(ctx context.Context, id string) (net.Conn, error) {
	name, _, err := pipeName(id)
	if err != nil {
		return nil, err
	}
	conn, err := winio.DialPipeContext(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, ErrNobody
	}
	return conn, nil
}
