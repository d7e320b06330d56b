package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/private"
)

// answerTimeout is how long a master has to answer a request for which it need not ask the
// host. It answers at once, unless it is stopped or waits for its user's answer.
const answerTimeout = 5 * time.Second

// A control is a connection to a master, for one request or two: the user's ssh
// does not end while it is open.
type control struct {
	conn *net.UnixConn
	id   uint32 // of the last request
}

// dialControl connects to the master at path, if that is a process of the user's, and exchanges
// hellos. The error is ErrNoMaster if nobody listens.
func dialControl(ctx context.Context, path string) (*control, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSilent)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoMaster
	case err != nil:
		return nil, fmt.Errorf("control socket: %w", told(ctx, err))
	}
	c := &control{conn: conn.(*net.UnixConn)}
	if err := private.CheckPeer(conn); err != nil {
		c.close()
		return nil, fmt.Errorf("control socket %q: %w", path, err)
	}
	if err := c.greet(ctx); err != nil {
		c.close()
		return nil, fmt.Errorf("control socket %q: %w", path, err)
	}
	return c, nil
}

func (c *control) close() { _ = c.conn.Close() }

// until makes reads and writes fail when ctx ends. The caller must call stop.
func (c *control) until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
}

// greet sends a hello, and reads the master's (PROTOCOL.mux section 1).
func (c *control) greet(ctx context.Context) error {
	defer c.until(ctx)()
	hello := header{msgHello, protocolVersion}
	if err := writeMessage(c.conn, ssh.Marshal(hello)); err != nil {
		return told(ctx, err)
	}
	m, err := c.receive()
	switch {
	case err != nil:
		return told(ctx, err)
	case m.Kind != msgHello:
		return errProtocol
	case m.ID != protocolVersion:
		return fmt.Errorf("%w: its version is %d", errProtocol, m.ID)
	}
	return nil
}

// ask sends a request and returns the answer; the error is a *RefusedError if the master
// refuses. what names the request in messages.
func (c *control) ask(ctx context.Context, what string, kind uint32, body any) (*message, error) {
	defer c.until(ctx)()
	if err := c.send(kind, body); err != nil {
		return nil, told(ctx, err)
	}
	return c.answer(ctx, what)
}

func (c *control) send(kind uint32, body any) error {
	c.id++
	request := ssh.Marshal(header{kind, c.id})
	if body != nil {
		request = append(request, ssh.Marshal(body)...)
	}
	return writeMessage(c.conn, request)
}

func (c *control) answer(ctx context.Context, what string) (*message, error) {
	m, err := c.receive()
	switch {
	case err != nil:
		return nil, told(ctx, err)
	case m.ID != c.id:
		return nil, fmt.Errorf("%w: an answer to another request", errProtocol)
	case m.Kind == sayFailure, m.Kind == sayPermissionDenied:
		return nil, &RefusedError{What: what, Reason: m.text(), Denied: m.Kind == sayPermissionDenied}
	}
	return m, nil
}

func (c *control) receive() (*message, error) {
	body, err := readMessage(c.conn)
	if err != nil {
		return nil, err
	}
	var m message
	if err := ssh.Unmarshal(body, &m); err != nil {
		return nil, errProtocol
	}
	return &m, nil
}

// alive asks the master for its process ID.
func (c *control) alive(ctx context.Context) (pid int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSilent)
	defer cancel()
	m, err := c.ask(ctx, "say that it is alive", askAlive, nil)
	if err != nil {
		return 0, err
	}
	number, err := m.number()
	if m.Kind != sayAlive || err != nil || number == 0 || number > 1<<31-1 {
		return 0, fmt.Errorf("%w: no process ID", errProtocol)
	}
	return int(number), nil
}

// forward opens or closes a forward.
func (c *control) forward(ctx context.Context, what string, kind uint32, body forwardBody) error {
	m, err := c.ask(ctx, what, kind, body)
	if err == nil && m.Kind != sayOK {
		err = errProtocol
	}
	return err
}

// closeOld closes a forward that may be open. If the master refuses, it has none, which is no
// error.
func (c *control) closeOld(ctx context.Context, what string, body forwardBody) error {
	err := c.forward(ctx, what, askCloseFwd, body)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return nil
	}
	return err
}

// told returns the error of a connection that ended: ctx's cause if ctx has ended it.
func told(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return lost(nil)
	}
	return err
}

// do sends a request that the master answers with a yes.
func (c *control) do(ctx context.Context, what string, kind uint32) error {
	m, err := c.ask(ctx, what, kind, nil)
	if err == nil && m.Kind != sayOK {
		err = errProtocol
	}
	return err
}
