package prepare

import (
	"errors"
	"fmt"

	"gpg-bridge/internal/usertext"
)

// A ReportError says that the host's answer to the preparation makes no sense: it comes
// from something else, or from a shell that is broken, or from somebody who wants to do
// harm. Err does not contain it unquoted.
type ReportError struct{ Err error }

func (e *ReportError) Error() string { return fmt.Sprintf("prepare the host: %v", e.Err) }

func (e *ReportError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ReportError) Hint() string {
	return "see what `gpgconf --list-dirs agent-socket` and the start-up files of its shell print on the host; " + hintRemoteSocket
}

// reportError returns a *ReportError, unless err has a hint of its own.
func reportError(err error) error {
	if usertext.Hint(err) != "" {
		return fmt.Errorf("prepare the host: %w", err)
	}
	return &ReportError{Err: err}
}

// isLost reports whether a command failed because the connection to the host was lost.
func isLost(err error) bool {
	var lost interface {
		error
		ConnectionLost() bool
	}
	return errors.As(err, &lost) && lost.ConnectionLost()
}

// noSession returns the error that says that no session was opened, which says nothing about
// the account's shell; nil if there is none. What is around it names our command.
func noSession(err error) error {
	var refused interface {
		error
		NoSession() bool
	}
	if errors.As(err, &refused) && refused.NoSession() {
		return refused
	}
	return nil
}
