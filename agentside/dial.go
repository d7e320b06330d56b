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
	"strings"
	"syscall"
	"time"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/usertext"
)

// How long to wait before connecting again to an agent whose backlog is full: about
// firstBackoff, then twice as long each time, up to mostBackoff.
const (
	firstBackoff = 5 * time.Millisecond
	mostBackoff  = 250 * time.Millisecond
)

// An Endpoint is where the local agent listens. It holds nothing open and knows
// no secret: a socket file is read again for every connection, because a restart of
// the agent changes port and nonce. Several goroutines may use it.
type Endpoint struct {
	locator *Locator
	path    string
	fixed   bool // the user named it: no other path is tried
}

// Path returns the path of the socket, or of the file that stands for it.
func (e *Endpoint) Path() string { return e.path }

// Dial connects to the agent, and starts it if it does not run. The agent
// sends nothing until Authenticate was called with the connection. While the
// agent's backlog is full, Dial tries again until ctx ends.
//
// If the extra socket is disabled, it connects to the main one. The caller must
// check that the connection is restricted, whichever it is.
//
// Errors: *NoAgentError, *SocketError, *StartError, *GpgconfError, ErrNoGpgconf.
func (e *Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	if e.fixed {
		return e.locator.dial(ctx, e.path)
	}
	dialEither := func(ctx context.Context) (net.Conn, error) { return e.dialEither(ctx, e.locator.dial) }
	conn, err := dialEither(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); gone {
		return e.locator.startAndDial(ctx, dialEither)
	}
	return conn, err
}

// noStart is an Endpoint that starts no agent.
type noStart struct {
	*Endpoint
	dial dialer
}

// A dialer connects to what is at a path. If nobody listens there, the error is a
// *NoAgentError.
type dialer func(ctx context.Context, path string) (net.Conn, error)

// Dial connects to the agent if it runs; else the error is a *NoAgentError.
func (e noStart) Dial(ctx context.Context) (net.Conn, error) {
	if e.fixed {
		return e.dial(ctx, e.path)
	}
	return e.dialEither(ctx, e.dial)
}

// dialEither tries the extra socket and then the main one. A main socket at which
// an agent listens beside an extra one at which none does is what "extra-socket none"
// looks like, and an agent that is forwarded from elsewhere.
func (e *Endpoint) dialEither(ctx context.Context, dial dialer) (net.Conn, error) {
	conn, err := dial(ctx, e.path)
	if _, gone := errors.AsType[*NoAgentError](err); !gone {
		return conn, err
	}
	path, err := e.main(ctx)
	if err != nil {
		return nil, err
	}
	return dial(ctx, path)
}

// extraSuffix is what GnuPG appends to the main socket's path to get the extra one's
// (gnupg configure.ac, GPG_AGENT_EXTRA_SOCK_NAME).
const extraSuffix = ".extra"

// main returns the path of the main socket beside the extra one. gpgconf is asked
// only if the name does not tell: by now it might name a socket in another directory,
// where another agent listens.
func (e *Endpoint) main(ctx context.Context) (string, error) {
	if main, ok := strings.CutSuffix(e.path, extraSuffix); ok {
		return main, nil
	}
	return e.locator.socketPath(ctx, mainSocket)
}

// dial connects to whatever is at path, and follows one redirect.
func (l *Locator) dial(ctx context.Context, path string) (net.Conn, error) {
	path, file, err := l.follow(path)
	if err != nil {
		return nil, socketError(path, err)
	}
	conn, err := dialFile(ctx, path, file)
	if err != nil {
		return nil, socketError(path, err)
	}
	return &agentConn{Conn: conn, file: file}, nil
}

// follow reads what is at path. If that is a redirect, it reads what is at the path where
// that leads. It returns the path that it read last, or could not read.
func (l *Locator) follow(path string) (string, assuan.SocketFile, error) {
	file, err := readSocketFile(path)
	if err != nil || file.Kind != assuan.SocketRedirect {
		return path, file, err
	}
	target, err := assuan.ExpandRedirect(file.Target, l.getenv)
	if err != nil {
		return path, file, err
	}
	file, err = readSocketFile(target)
	if err == nil && file.Kind == assuan.SocketRedirect {
		err = errRedirectTwice
	}
	return target, file, err
}

// agentConn is a connection with the file that says how to authenticate.
type agentConn struct {
	net.Conn
	file assuan.SocketFile // Kind 0: a Unix socket
}

func dialFile(ctx context.Context, path string, file assuan.SocketFile) (net.Conn, error) {
	if file.Kind == 0 {
		return dialUnix(ctx, path)
	}
	// The file can name only a port, so it cannot lead us to another host.
	var d net.Dialer
	return d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(file.Port))))
}

// dialUnix tries again while the agent's backlog, 64 by default, is full: since Go's
// sockets are non-blocking, Linux then does not wait, but fails the connect with
// EAGAIN (unix(7)). A socket that belongs to another user, who may have made it at a
// path of ours in /tmp, is refused before a byte is sent.
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
		// An error of a later try that comes from the end of ctx hides the EAGAIN.
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

// pause waits for between 0.5 and 1.5 times d, so that those who failed at the same
// time do not try again at the same time.
func pause(ctx context.Context, d time.Duration) error {
	return retry.Sleep(ctx, d/2+rand.N(d), nil)
}

// socketError returns a *NoAgentError if nobody listens at the socket, and a
// *SocketError for everything else that can be wrong with it.
func socketError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || refused(err) {
		return &NoAgentError{Path: path, Err: rootCause(err)}
	}
	return &SocketError{Path: path, Err: rootCause(err)}
}

// rootCause unwraps the errors of the packages os and net, which would name the path
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

// Hint returns the cause's hint, if it has one.
func (e *SocketError) Hint() string {
	if hint := usertext.Hint(e.Err); hint != "" {
		return hint
	}
	return "see where the agent listens with gpgconf --list-dirs agent-extra-socket, and who may use it"
}
