package sshfwd

import (
	"fmt"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
)

// ExitConnectionLost is the status of ssh(1) for everything but the end of the
// remote command: "exits with the exit status of the remote command or with
// 255 if an error occurred".
const ExitConnectionLost = 255

// A RequestRefusedError says that the server refused to start a session's
// shell, command or subsystem. The protocol gives no reason.
type RequestRefusedError struct {
	Request string // "shell", "exec" or "subsystem"
}

func (e *RequestRefusedError) Error() string {
	return fmt.Sprintf("the server refused the %s request", e.Request)
}

// NothingRan returns true; see link.NothingRan.
func (e *RequestRefusedError) NothingRan() bool { return true }

// Hint says what to do.
func (e *RequestRefusedError) Hint() string {
	return "check that the account may log in there, and the server's log"
}

// A SessionRefusedError says that the server refused to open a session.
type SessionRefusedError struct {
	Reason  string // of RFC 4254 section 5.1, in words
	Message string // the server's own text, not to be trusted
}

func (e *SessionRefusedError) Error() string {
	return fmt.Sprintf("cannot open a session: the server refuses it: %s (it says %.200q)", e.Reason, e.Message)
}

// NothingRan returns true; see link.NothingRan.
func (e *SessionRefusedError) NothingRan() bool { return true }

// NoSession returns true: there was no session in which a command could run. It tells callers
// that do not know this package.
func (e *SessionRefusedError) NoSession() bool { return true }

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

// note reads a request of a session channel if it is exit-status or exit-signal; the last
// one counts.
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

// code is the status that ssh would exit with.
func (e exit) code() int {
	if !e.known || e.signal != "" {
		return ExitConnectionLost
	}
	return e.status
}

// err is a *link.ExitError, or nil for status 0 or an end that is not known.
func (e exit) err() error {
	if !e.known || e.code() == 0 {
		return nil
	}
	return &link.ExitError{Status: e.code(), Signal: e.signal}
}
