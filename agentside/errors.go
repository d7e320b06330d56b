package agentside

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpg-bridge/internal/usertext"
)

// ErrUnrestricted says that the agent would obey every command on this
// connection: the socket is its main one, or another program's. Nothing that came
// from the host was sent to it.
var ErrUnrestricted = usertext.WithHint(
	"the agent's socket is not a restricted one",
	"use the socket that gpgconf --list-dirs agent-extra-socket names, or give the host all power over the agent with --allow-unrestricted",
)

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
// greet: the nonce was wrong, or the agent is being stopped, or it is no agent.
type NoGreetingError struct{ Cause error }

func (e *NoGreetingError) Error() string {
	return fmt.Sprintf("no greeting from the agent: %v", e.Cause)
}

func (e *NoGreetingError) Unwrap() error { return e.Cause }

// Hint says what to do.
func (e *NoGreetingError) Hint() string {
	return "restart it: gpgconf --kill gpg-agent, then gpgconf --launch gpg-agent"
}

// A SilentError says that one of GnuPG's programs took too long. It was killed, with
// all that it had started.
type SilentError struct {
	Program, Args string
	After         time.Duration
}

// newSilentError is for a program that was started at start and had the time limit, or
// less if its caller's context ended earlier.
func newSilentError(program string, args []string, start time.Time, limit time.Duration) *SilentError {
	after := min(time.Since(start).Round(time.Second/10), limit)
	return &SilentError{Program: program, Args: fmt.Sprintf("%.80s", strings.Join(args, " ")), After: after}
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("%s %s did not answer within %v", e.Program, e.Args, e.After)
}

// Hint says what to do.
func (e *SilentError) Hint() string {
	return fmt.Sprintf("see what hangs: %s %s; a lock or a network directory in its home, or another %s in PATH", e.Program, e.Args, e.Program)
}

// Unwrap returns context.DeadlineExceeded.
func (e *SilentError) Unwrap() error { return context.DeadlineExceeded }
