package config

import "fmt"

// An Error says why the destination could not be resolved into something to connect
// to. Problem is one line; Advice says what to do.
type Error struct {
	Problem string
	Advice  string
	Err     error // may be nil

	// Said is what ssh said of it, line by line and safe for a terminal; empty if it was told to
	// say nothing, and nil if it was not ssh that refused.
	Said []string
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Problem
	}
	return e.Problem + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Hopeless is true: see link.Hopeless.
func (e *Error) Hopeless() bool { return true }

// Hint says what to do.
func (e *Error) Hint() string { return e.Advice }

// An UnsupportedError says that the configuration asks for something we do not support,
// and without which we would connect elsewhere than ssh, or trust more.
type UnsupportedError struct{ Option, Value string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported (it is set to %q)", e.Option, e.Value)
}

// Hopeless is true: see link.Hopeless.
func (e *UnsupportedError) Hopeless() bool { return true }

// Hint says what to do.
func (e *UnsupportedError) Hint() string {
	return fmt.Sprintf("override it for this host, such as with -o %s=none, if the host can be reached without", e.Option)
}
