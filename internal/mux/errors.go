package mux

import (
	"errors"
	"fmt"
)

// ErrNoMaster says that nobody shares a connection at the control path.
var ErrNoMaster = errors.New("no ssh shares its connection there")

var (
	errProtocol = errors.New("what answers at the control socket does not speak OpenSSH's multiplexing protocol")
	errReplaced = errors.New("another ssh has taken its place")
	errSilent   = errors.New("it does not answer")
)

// A RefusedError says that the master would not do what it was asked. Its
// connection may be well.
type RefusedError struct {
	What   string // "open a session"
	Reason string // the master's own
	Denied bool   // its user has said no
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the ssh that shares its connection would not %s (it says %.200q)", e.What, e.Reason)
}

// Hint says what to do.
func (e *RefusedError) Hint() string {
	if e.Denied {
		return "ControlMaster ask and autoask ask you each time: say yes there, or set ControlMaster auto in ssh_config"
	}
	return "see MaxSessions in the server's sshd_config, and what that ssh says on its terminal"
}

// A LostError says that the master has ended, or given up its control socket.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	if e.Err == nil {
		return "connection lost: the ssh that shared it has ended"
	}
	return fmt.Sprintf("connection lost: the ssh that shared it cannot be asked any more: %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// ConnectionLost is true. It tells callers that do not know this package.
func (e *LostError) ConnectionLost() bool { return true }

// Hint says what to do.
func (e *LostError) Hint() string {
	return "the next ssh to the host with ControlMaster shares its connection again"
}
