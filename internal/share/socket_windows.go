package share

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// pipeName returns the name of a target's pipe, and the user's SID. All users' pipes are in
// one namespace, so the user is part of the name; the security descriptor keeps others out.
func pipeName(id string) (name, user string, err error) {
	token, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", "", err
	}
	user = token.User.Sid.String()
	return `\\.\pipe\gpg-bridge-` + user + "-" + id, user, nil
}

// nameTimeout is how long to wait for the name of a bridge that has ended to be free.
const nameTimeout = 2 * time.Second

// listen makes the first instance of the pipe, for the user only. We have the lock, but
// the name is taken until the last handle of the previous bridge is closed, also of its
// clients' handles.
func (d *Dir) listen(id string) (net.Listener, fs.FileInfo, error) {
	name, user, err := pipeName(id)
	if err != nil {
		return nil, nil, err
	}
	tooLate := time.After(nameTimeout)
	for {
		listener, err := listenPipe(name, user)
		if !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return listener, nil, err
		}
		select {
		case <-time.After(firstRetry):
		case <-tooLate:
			return nil, nil, err
		}
	}
}

// listenPipe listens on the pipe. The owner is set explicitly, since by default an elevated
// process's pipe belongs to all administrators. Without buffers a write would block until
// the other side reads, and a client that does something else would miss the last status.
func listenPipe(name, user string) (net.Listener, error) {
	return winio.ListenPipe(name, &winio.PipeConfig{
		SecurityDescriptor: "O:" + user + "D:P(A;;GA;;;" + user + ")",
		InputBufferSize:    maxRequest,
		OutputBufferSize:   maxStatus,
	})
}

// removeSocket has nothing to do: a pipe is no file, and goes with its last handle.
func (d *Dir) removeSocket(string, fs.FileInfo) {}

func (d *Dir) isSocket(string, fs.FileInfo) bool { return true }

func (d *Dir) dial(ctx context.Context, id string) (net.Conn, error) {
	name, _, err := pipeName(id)
	if err != nil {
		return nil, err
	}
	conn, err := winio.DialPipeContext(ctx, name)
	return checkDialed(ctx, conn, err)
}
