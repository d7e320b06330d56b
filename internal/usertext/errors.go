package usertext

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// A Hinted error has advice on what to do about it, in one line.
type Hinted interface {
	error
	Hint() string
}

// Hint returns the advice of an error, or of one that it wraps, or "".
func Hint(err error) string {
	if hinted, ok := errors.AsType[Hinted](err); ok {
		return hinted.Hint()
	}
	return ""
}

// WithHint returns an error with that text and advice, each of one line.
func WithHint(text, hint string) error { return &hintedError{text, hint} }

type hintedError struct{ text, hint string }

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Hint() string  { return e.hint }

// RootCause returns the innermost error: the system's own words, without what net adds
// around them, such as addresses.
func RootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// SystemWords is the system's text for the cause of an error, as strerror(3) has it:
// "Connection refused". A time-out of ours is the system's.
func SystemWords(err error) string {
	cause := RootCause(err)
	if os.IsTimeout(err) {
		cause = syscall.ETIMEDOUT
	}
	text := Line(cause.Error())
	if text == "" {
		return "failure"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
