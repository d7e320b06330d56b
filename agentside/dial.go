package agentside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/private"
)

// How long to wait before a full agent is tried again: about this, and twice
// as long each time up to the most.
const (
	firstBackoff = 5 * time.Millisecond
	mostBackoff  = 250 * time.Millisecond
)

// An Endpoint is where the local agent listens. It holds nothing open and
// knows no secret: the file is read again for every connection, because the
// agent's restart changes port and nonce. It may be used by several
// goroutines.
type Endpoint struct {
	locator *Locator
	path    string
	fixed   bool // the user named it: no other is tried
}

// Path returns the path of the socket, or of the file that stands for it.
func (e *Endpoint) Path() string { return e.path }

// Dial connects to the agent, and starts it when it does not run. The agent
// says nothing until Authenticate was called with the connection. ctx bounds
// all of it: a full agent is tried again until then.
//
// Where the extra socket is disabled, it connects to the main one. The caller
// has to make sure that the connection is restricted in any case.
//
// Errors: *NoAgentError, *SocketError, *GpgconfError, ErrNoGpgconf.
func (e *Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	if e.fixed {
		return e.locator.dial(ctx, e.path)
	}
	conn, err := e.dialEither(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); gone {
		return e.locator.startAndDial(ctx, e.dialEither)
	}
	return conn, err
}

// dialEither tries the extra socket and then the main one, for which gpgconf
// is asked only now. A main socket that lives beside a dead extra one is what
// "extra-socket none" looks like, and an agent forwarded from elsewhere.
func (e *Endpoint) dialEither(ctx context.Context) (net.Conn, error) {
	conn, err := e.locator.dial(ctx, e.path)
	if _, gone := errors.AsType[*NoAgentError](err); !gone {
		return conn, err
	}
	path, err := e.locator.socketPath(ctx, mainSocket)
	if err != nil {
		return nil, err
	}
	return e.locator.dial(ctx, path)
}

// dial connects to whatever is at path, and follows one redirect.
func (l *Locator) dial(ctx context.Context, path string) (net.Conn, error) {
	file, err := readSocketFile(path)
	if err == nil && file.Kind == assuan.SocketRedirect {
		if path, err = assuan.ExpandRedirect(file.Target, l.getenv); err == nil {
			file, err = readSocketFile(path)
		}
	}
	if err == nil && file.Kind == assuan.SocketRedirect {
		err = errRedirectTwice
	}
	if err != nil {
		return nil, socketError(path, err)
	}
	conn, err := dialFile(ctx, path, file)
	if err != nil {
		return nil, socketError(path, err)
	}
	return &agentConn{Conn: conn, file: file}, nil
}

// agentConn is a connection that knows what the agent wants to see first.
type agentConn struct {
	net.Conn
	file assuan.SocketFile // Kind 0: a Unix socket
}

func dialFile(ctx context.Context, path string, file assuan.SocketFile) (net.Conn, error) {
	if file.Kind == 0 {
		return dialUnix(ctx, path)
	}
	// The file says only a port: there is no other host to be led to.
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(file.Port))))
}

// dialUnix tries again while the agent's backlog is full, 64 by default: Linux
// then fails a connect of Go's at once with EAGAIN instead of waiting, since
// the socket is a non-blocking one (unix(7)). A socket of another user's, as he
// may have put one at a path of ours in /tmp, is refused before a byte is sent.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) {
		return nil, errors.New("the path is too long for a socket")
	}
	var d net.Dialer
	for backoff := firstBackoff; ; backoff = min(2*backoff, mostBackoff) {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return checkedPeer(conn)
		}
		// What a later try says once the time is over is no news.
		tooLate := backoff > firstBackoff && (errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil)
		if !errors.Is(err, syscall.EAGAIN) && !tooLate {
			return nil, err
		}
		if err := pause(ctx, backoff); err != nil {
			return nil, fmt.Errorf("the agent has too many connections waiting: %w", err)
		}
	}
}

func checkedPeer(conn net.Conn) (net.Conn, error) {
	if err := private.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// pause waits between half and one and a half of d, so that those who failed
// together do not come back together.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// socketError tells a socket at which nobody listens from all else that can be
// wrong with it.
func socketError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || refused(err) {
		return &NoAgentError{Path: path, Err: rootCause(err)}
	}
	return &SocketError{Path: path, Err: rootCause(err)}
}

// rootCause takes off the layers of package os and net that would say the path
// a second time.
func rootCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err
	}
	return err
}

// A NoAgentError says that nobody listens at the socket's path.
type NoAgentError struct {
	Path string
	Err  error
}

func (e *NoAgentError) Error() string {
	return fmt.Sprintf("no gpg-agent at %q: %v", e.Path, e.Err)
}

func (e *NoAgentError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *NoAgentError) Hint() string {
	return "start it with gpgconf --launch gpg-agent, and see where it listens with gpgconf --list-dirs agent-extra-socket"
}

// A SocketError says that what is at the socket's path cannot be used.
type SocketError struct {
	Path string
	Err  error
}

func (e *SocketError) Error() string { return fmt.Sprintf("agent socket %q: %v", e.Path, e.Err) }

func (e *SocketError) Unwrap() error { return e.Err }

// Hint says what to do: the cause's own advice, if it has one.
func (e *SocketError) Hint() string {
	if hinted, ok := errors.AsType[interface {
		error
		Hint() string
	}](e.Err); ok {
		return hinted.Hint()
	}
	return "see where the agent listens with gpgconf --list-dirs agent-extra-socket, and who may use it"
}
