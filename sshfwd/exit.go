package sshfwd

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// ExitConnectionLost is the status of ssh(1) for everything but the end of the
// remote command: "exits with the exit status of the remote command or with
// 255 if an error occurred".
const ExitConnectionLost = 255

// ErrNoExitStatus says that a session ended and the server did not say how:
// the connection was lost, or the server closed the channel.
var ErrNoExitStatus = errors.New("the remote command ended without an exit status")

// An ExitError says that a remote command ended other than with status 0.
type ExitError struct {
	// Status is the exit status; ExitConnectionLost where Signal is set.
	Status int
	// Signal is the name of the signal that ended it, without SIG (RFC 4254
	// section 6.10), as the server sent it: not to be trusted.
	Signal string
}

func (e *ExitError) Error() string {
	if e.Signal != "" {
		return fmt.Sprintf("the remote command was ended by signal %.40q", e.Signal)
	}
	return fmt.Sprintf("the remote command ended with status %d", e.Status)
}

// A RequestRefusedError says that the server refused to start a session's
// shell, command or subsystem. The protocol has no reason to give.
type RequestRefusedError struct {
	Request string // "shell", "exec" or "subsystem"
}

func (e *RequestRefusedError) Error() string {
	return fmt.Sprintf("the server refused the %s request", e.Request)
}

// Hint says what to do.
func (e *RequestRefusedError) Hint() string {
	return "check that the account may log in there, and the server's log"
}

// A SessionRefusedError says that the server opened no session.
type SessionRefusedError struct {
	Reason  string // of RFC 4254 section 5.1, in words
	Message string // the server's own text, not to be trusted
}

func (e *SessionRefusedError) Error() string {
	return fmt.Sprintf("cannot open a session: the server refuses it: %s (it says %.200q)", e.Reason, e.Message)
}

// Hint says what to do.
func (e *SessionRefusedError) Hint() string {
	return "see MaxSessions in the server's sshd_config, and its log; -N forwards without a session"
}

// exit is how a session's process ended, as far as the server has said.
type exit struct {
	known  bool
	status int
	signal string
}

// note takes one request of a session channel, if it is exit-status or
// exit-signal; the last one counts.
func (e *exit) note(req *ssh.Request) {
	switch req.Type {
	case "exit-status":
		var payload struct{ Status uint32 }
		if ssh.Unmarshal(req.Payload, &payload) == nil {
			*e = exit{known: true, status: int(payload.Status)}
		}
	case "exit-signal":
		var payload struct {
			Signal    string
			Dumped    bool
			Message   string
			Languages string
		}
		if ssh.Unmarshal(req.Payload, &payload) == nil && payload.Signal != "" {
			*e = exit{known: true, signal: payload.Signal}
		}
	}
}

// code is what ssh would exit with.
func (e exit) code() int {
	if !e.known || e.signal != "" {
		return ExitConnectionLost
	}
	return e.status
}

// err is an *ExitError for every known end but status 0.
func (e exit) err() error {
	if !e.known || e.code() == 0 {
		return nil
	}
	return &ExitError{Status: e.code(), Signal: e.signal}
}
