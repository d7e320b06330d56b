package link

import (
	"errors"
	"fmt"

	"gpg-bridge/internal/usertext"
)

// A LostError says that an established link ended without Close.
type LostError struct {
	// Err is why, nil where that is not known.
	Err error
	// Advice is what Hint returns: one line; "" for the usual advice.
	Advice string
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return "connection lost"
	}
	return "connection lost: " + usertext.Quoted(e.Err.Error())
}

func (e *LostError) Unwrap() error { return e.Err }

// ConnectionLost is true. It tells callers that do not know this package.
func (e *LostError) ConnectionLost() bool { return true }

// Hint says what to do.
func (e *LostError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	return "check the network and the host, then connect again"
}

// ErrNoExitStatus says that a command ended and the host did not say how: the
// connection was lost, or the host ended the session.
var ErrNoExitStatus = errors.New("the remote command ended without an exit status")

// An ExitError says that a remote command ended other than with status 0.
type ExitError struct {
	// Status is the exit status; 255 where Signal is set, as ssh(1) exits.
	Status int
	// Signal is the name of the signal that ended it, without SIG (RFC 4254
	// section 6.10), as the server sent it: not to be trusted.
	Signal string
}

func (e *ExitError) Error() string {
	if e.Signal != "" {
		return fmt.Sprintf("the remote command was ended by signal %.40q", e.Signal)
	}
	return fmt.Sprintf("the remote command ended with status %d", e.Status)
}

// A RefusedError says that the host refused to listen at Path. SSH gives no reason (RFC 4254
// section 4), so the caller, who can look at the host, fills in Advice, unless the link knows
// what to do, as with a server that has no such forwards.
type RefusedError struct {
	Path string
	// Advice is what Hint returns, one line: what the caller has found out.
	Advice string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server refused to listen on the socket %q", e.Path)
}

// Hint says what to do: Advice, or the reasons that sshd has.
func (e *RefusedError) Hint() string {
	if e.Advice != "" {
		return e.Advice
	}
	return "remove the file if it exists, make its directory, or set AllowStreamLocalForwarding yes in the server's sshd_config"
}

// A PathError says that Path is not absolute. The host was not asked: sshd would take a
// relative path from its own working directory.
type PathError struct{ Path string }

func (e *PathError) Error() string {
	return fmt.Sprintf("forward %q: not an absolute path", e.Path)
}

// Hint says what to do.
func (e *PathError) Hint() string {
	return "give a path that begins with /; ~ and variables are not expanded"
}

// ErrUnanswered says that the link is known to be down, or that the host still owes the answer
// to an earlier request of the kind. Nothing was sent: it would only be queued ahead of what
// the user types.
var ErrUnanswered = errors.New("the server has not answered an earlier request")

// A DialError says that the server did not connect to a socket.
type DialError struct {
	Path string
	// Prohibited: the server does not allow such channels, so the attempt says nothing
	// about the socket. It is false if nothing listens at Path, or the account may not
	// connect there. OpenSSH's sshd never sets it: it gives the same answer in all these
	// cases (server_input_channel_open in serverloop.c).
	Prohibited bool
	// Unsupported: the server does not know the channel type, as an old dropbear.
	Unsupported bool
	// Message is the server's own text, not to be trusted; may be empty.
	Message string
}

func (e *DialError) Error() string {
	switch {
	case e.Prohibited:
		return fmt.Sprintf("the server prohibits connections to its socket %q (it says %.200q)", e.Path, e.Message)
	case e.Unsupported:
		return fmt.Sprintf("the server cannot connect to its socket %q (it says %.200q)", e.Path, e.Message)
	}
	return fmt.Sprintf("nothing answers at the socket %q of the server (it says %.200q)", e.Path, e.Message)
}

// Hint says what to do.
func (e *DialError) Hint() string {
	switch {
	case e.Prohibited:
		return "set AllowStreamLocalForwarding to yes or all in the server's sshd_config"
	case e.Unsupported:
		return "use a server that forwards Unix sockets, such as OpenSSH 6.7 or later"
	}
	return "check that a process listens there and that the account may connect to it"
}
