package ui

import "fmt"

// ExitConnection is ssh's exit status for its own failures (ssh(1)).
const ExitConnection = 255

// An ExitError ends the program with a given status.
type ExitError struct {
	Code int
	Err  error // to be printed, unless it is nil
}

// Exit returns an *ExitError: code is the program's exit status, err is printed before that,
// unless it is nil.
func Exit(code int, err error) error { return &ExitError{code, err} }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d: %v", e.Code, e.Err) }
func (e *ExitError) Unwrap() error { return e.Err }

// A UsageError is a command line that cannot be understood.
type UsageError struct {
	command string
	err     error
}

// Usage returns a *UsageError: command is the command's whole name, and err says what is wrong
// with the command line.
func Usage(command string, err error) error { return &UsageError{command, err} }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }
func (e *UsageError) Hint() string  { return "see " + e.command + " --help" }
