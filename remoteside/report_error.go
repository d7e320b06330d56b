package remoteside

import (
	"errors"
	"fmt"
)

// A ReportError says that what the host answered to the preparation makes no
// sense: it was printed by something else, by a shell that is broken, or to do
// harm. Err does not hold it raw.
type ReportError struct{ Err error }

func (e *ReportError) Error() string { return fmt.Sprintf("prepare the host: %v", e.Err) }

func (e *ReportError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ReportError) Hint() string {
	return "see what `gpgconf --list-dirs agent-socket` and the start-up files of its shell print on the host; " + hintRemoteSocket
}

// reportError is a *ReportError, unless err says itself what to do.
func reportError(err error) error {
	var hinted interface {
		error
		Hint() string
	}
	if errors.As(err, &hinted) {
		return fmt.Errorf("prepare the host: %w", err)
	}
	return &ReportError{Err: err}
}

// isLost reports whether the command did not end, but the connection to the
// host did.
func isLost(err error) bool {
	var lost interface {
		error
		ConnectionLost() bool
	}
	return errors.As(err, &lost) && lost.ConnectionLost()
}
