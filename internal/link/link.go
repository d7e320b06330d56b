package link

import (
	"context"
	"io"
)

// A Link is a connection to a host. Its methods may be called from any goroutine.
// When it is lost, calls that are under way and later ones fail with a *[LostError], wherever
// they would have to wait for the host.
type Link interface {
	// Run runs command with the account's shell, without a terminal, and returns
	// when it has ended and its output is written, or when ctx ends. The error is
	// nil for status 0, an *[ExitError] for any other end that the host reports, and
	// [ErrNoExitStatus] if it reports none. An error of a Write to stdout or stderr is
	// joined to it.
	//
	// A nil stdin is empty; a nil stdout or stderr discards. Nothing is written
	// after Run has returned. It does not wait for a Read of stdin that is under
	// way, which cannot be interrupted: the caller ends stdin afterwards.
	Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error

	// Forward has the host listen on the Unix socket at path, absolute there, and
	// calls serve for each connection, in a goroutine of its own. The Conn is
	// closed when serve returns. The ctx of serve carries ctx's values and ends
	// when the Forward is closed; ctx itself bounds the request only. serve must
	// return soon after its Conn is closed. It may be called before Forward returns.
	//
	// The error is a *[RefusedError] if the host refused, and a *[PathError] if it was
	// not asked. A bridge needs one Forward at a time; a Link may refuse a second one.
	Forward(ctx context.Context, path string, serve func(ctx context.Context, conn Conn)) (Forward, error)

	// DialUnix connects to the Unix socket at path, absolute, on the host. ctx
	// bounds the opening only. The error is a *[DialError] if the host answered
	// that it cannot; a Link that learns that only later returns it from the
	// first Read. If the link is known to be down, or the answer to an earlier
	// call is still owed, nothing is sent, and the error is [ErrUnanswered].
	DialUnix(ctx context.Context, path string) (Conn, error)

	// Wait returns when the link has ended: nil after Close, else why, which is a
	// *[LostError].
	Wait() error

	// CheckAlive asks the other side for an answer. If there is none until ctx ends, the
	// link ends.
	CheckAlive(ctx context.Context)

	// Close ends the link with its forwards and connections, dead or alive, and
	// returns when its own goroutines have ended. A connection that it shares stays. A
	// second Close is a no-op.
	Close() error

	// SharedBy returns the process whose connection this is, and which lives on after
	// Close; 0 if the connection is the link's own.
	SharedBy() (pid int)
}

// A Forward is one socket on the host whose connections come to us. The socket's file stays
// when the Forward ends.
type Forward interface {
	// Close has the host stop listening, closes every connection of the Forward and
	// returns when every serve call has. ctx bounds the wait. An error says that the host
	// refused, or did not answer; the Forward is closed all the same. On a link that has
	// ended it returns nil. A second Close waits like the first.
	Close(ctx context.Context) error
}

// A Conn is one connection to or from a socket on the host. One goroutine may read
// while another writes. Close may be called from any, ends both, and does not wait.
type Conn interface{ io.ReadWriteCloser }
