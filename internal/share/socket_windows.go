package share

import (
	"context"
	"errors"
	"net"
	"time"

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

// nameTimeout bounds the wait for the pipe of a bridge that has ended.
const nameTimeout = 2 * time.Second

// listen makes the first instance of the pipe, for the user and nobody else. We
// have the lock, but the name is taken until the last handle of the bridge before
// us is closed, those of its clients among them.
func (d *Dir) listen(id string) (net.Listener, error) {
	name, user, err := pipeName(id)
	if err != nil {
		return nil, err
	}
	tooLate := time.After(nameTimeout)
	for {
		listener, err := listenPipe(name, user)
		if !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return listener, err
		}
		select {
		case <-time.After(firstRetry):
		case <-tooLate:
			return nil, err
		}
	}
}

// listenPipe: without buffers a write waits until the other side reads, and who
// does something else would miss the last status.
func listenPipe(name, user string) (net.Listener, error) {
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
