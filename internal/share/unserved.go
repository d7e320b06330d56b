package share

import (
	"errors"
	"fmt"
	"time"
)

// LookPause is the pause between two checks of a lock whose holder does not answer: it is
// about to listen, or to end.
const LookPause = 20 * time.Millisecond

// CannotBeAsked reports whether an error says that a process is the bridge but cannot be
// asked for anything: it does not answer, or is of another version.
func CannotBeAsked(err error) bool {
	_, silent := errors.AsType[*SilentError](err)
	_, version := errors.AsType[*VersionError](err)
	return silent || version
}

// IsRefusedPrompt reports whether the bridge refused a prompt, which it can only do while it
// serves the host, even if it has not verified its path yet. p may be nil.
func (p *Problem) IsRefusedPrompt() bool { return p != nil && p.Kind == RefusedPrompt }

// An UnservedError tells the user why gpg on the host has no agent, or why an operation was
// refused.
type UnservedError struct {
	Host    string // as the user has named it
	Problem *Problem
}

func (e *UnservedError) Error() string {
	if e.Problem.IsRefusedPrompt() {
		return e.Problem.Text
	}
	return fmt.Sprintf("no bridge for gpg on %s: %s", e.Host, e.Problem.Text)
}

// Hint says what to do.
func (e *UnservedError) Hint() string { return e.Problem.Remedy }
