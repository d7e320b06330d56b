package mux

import (
	"errors"
	"fmt"

	"gpg-bridge/internal/link"
)

// ErrNoMaster says that no ssh shares its connection at the control path.
var ErrNoMaster = errors.New("no ssh shares its connection there")

var (
	errProtocol = errors.New("what answers at the control socket does not speak OpenSSH's multiplexing protocol")
	errReplaced = errors.New("another ssh has taken its place")
	errEnded    = errors.New("the ssh that shared it has ended")
	errSilent   = errors.New("it does not answer")
)

// A RefusedError says that the master refused a request. Its connection may be fine.
type RefusedError struct {
	What   string // "open a session"
	Reason string // in the master's words
	Denied bool   // its user refused
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the ssh that shares its connection would not %s (it says %.200q)", e.What, e.Reason)
}

// NothingRan is true: see link.NothingRan.
func (e *RefusedError) NothingRan() bool { return true }

// NoSession is true: there was no session in which a command could run. It tells callers that
// do not know this package.
func (e *RefusedError) NoSession() bool { return true }

// Hint says what to do.
func (e *RefusedError) Hint() string {
	if e.Denied {
		return "ControlMaster ask and autoask ask you each time: say yes there, or set ControlMaster auto in ssh_config"
	}
	return "see MaxSessions in the server's sshd_config, and what that ssh says on its terminal"
}

// lost says that the master has ended or, if why says why it cannot be asked any more, that it
// has given up its control socket.
func lost(why error) *link.LostError {
	err := errEnded
	if why != nil {
		err = fmt.Errorf("the ssh that shared it cannot be asked any more: %w", why)
	}
	return &link.LostError{Err: err, Advice: "the next ssh to the host with ControlMaster shares its connection again"}
}
