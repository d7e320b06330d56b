package agentside

import (
	"errors"
	"fmt"
)

// ErrUnrestricted says that the agent would obey every command on this
// connection: the socket is its main one, or a foreign program's. Nothing of
// the remote's was sent to it.
var ErrUnrestricted error = &hintedError{
	text: "the agent's socket is not a restricted one",
	hint: "use the socket that gpgconf --list-dirs agent-extra-socket names, or give the host all power over the agent with --allow-unrestricted",
}

var (
	errInvalidResponse = errors.New("the agent sent a line that is not Assuan")
	errNotACommand     = errors.New("not a command that the agent would answer")
	errTakesNothing    = errors.New("the agent does not read: it took nothing for 5 s")
	errResponseTooLong = errors.New("the agent's response is longer than 1 MiB")
)

// A ViolationError is an event that the session's table does not list for its
// state, such as a command sent before the last one was answered.
type ViolationError struct {
	State, Event string
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("protocol violation: %s while %s", e.Event, e.State)
}

// A NoGreetingError says that something accepted the connection and did not
// greet: a wrong nonce, an agent that is being stopped, or not an agent.
type NoGreetingError struct{ Cause error }

func (e *NoGreetingError) Error() string {
	return fmt.Sprintf("no greeting from the agent: %v", e.Cause)
}

func (e *NoGreetingError) Unwrap() error { return e.Cause }

// Hint says what to do.
func (e *NoGreetingError) Hint() string {
	return "restart it: gpgconf --kill gpg-agent, then gpgconf --launch gpg-agent"
}

// hintedError is an error with what to do about it.
type hintedError struct{ text, hint string }

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Hint() string  { return e.hint }
