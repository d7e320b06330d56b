package agentside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// maxResponse bounds what SendCommands collects, in bytes. A response that is
// only passed on is not collected and has no such bound.
const maxResponse = 1 << 20

// A Session is one conversation with the agent, from its greeting to its end.
//
// WriteLine and ReadLine may be called from two goroutines at once, one each;
// Close from any, and it ends the other two.
type Session struct {
	id       uuid.UUID
	at       endpoint
	greeting []byte

	conn      net.Conn // set by actDial, before the session is anybody else's
	closeConn func() error
	in        assuan.LineBuffer // owned by the goroutine that reads

	// mu is held for one whole step, including the write that its action makes,
	// so an answer cannot be recorded before the command that it answers. It is
	// never held while reading, and Close closes the connection before it locks
	// mu.
	mu    sync.Mutex
	state state
	out   *bufio.Writer
	bulky bool  // the block that is being written did not fit in out
	cause error // the first reason for which the session left its normal states
}

// ID returns the session's identity.
func (s *Session) ID() uuid.UUID { return s.id }

// Greeting returns the agent's first line, an OK, with its LF.
func (s *Session) Greeting() []byte { return s.greeting }

// WriteLine sends a line with its LF: a command, or one line of the answer to
// an inquiry. D lines are held back until the END or CAN that completes the
// block, because the agent says nothing before that. A line that the table does
// not allow, such as a command before the last one was answered, ends the session
// with a *ViolationError. After the session's end the error is its cause, or
// io.EOF.
func (s *Session) WriteLine(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.final() {
		return s.ended()
	}
	return s.step(context.Background(), evClientDataReceived, line)
}

// ReadLine returns the agent's next line with its LF, as soon as it is
// complete; it stays valid until the next ReadLine. more says that another valid
// line of the same response has already been read, so the caller need not flush
// yet. A line after the end of a response is one that nobody asked for: the session
// ends with it, but the response is returned. After the agent has closed between
// two responses the error is io.EOF.
func (s *Session) ReadLine() (line []byte, more bool, err error) {
	line, err = s.readLine()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.state.final() {
		return nil, false, s.lost(err)
	}
	ev := evAgentDataChunk
	if kind := assuan.KindOf(line); kind.Final() {
		ev = evAgentDataReceived
	} else if kind == assuan.KindInvalid {
		ev = s.fail(errInvalidResponse)
	}
	if err := s.step(context.Background(), ev, line); err != nil {
		return nil, false, err
	}
	if ev == evAgentDataChunk {
		return line, s.responseGoesOn(), nil
	}
	if s.in.More() {
		// The next command must not take that line for its answer.
		_ = s.step(context.Background(), evAgentDataChunk, nil)
	}
	return line, false, nil
}

// responseGoesOn reports whether the next line has been read and is valid.
func (s *Session) responseGoesOn() bool {
	next, _ := s.in.Next()
	return next != nil && assuan.KindOf(next) != assuan.KindInvalid
}

func (s *Session) readLine() ([]byte, error) {
	for {
		line, err := s.in.Next()
		if line != nil || err != nil {
			s.in.Take(line)
			return line, err
		}
		n, err := s.conn.Read(s.in.Space())
		s.in.Commit(n)
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// lost delivers the end of the connection. Between two responses it is an
// orderly end: the agent has answered BYE, or was stopped.
func (s *Session) lost(err error) error {
	if s.state.final() {
		return s.ended()
	}
	if errors.Is(err, io.EOF) && s.state == stateReady {
		_ = s.step(context.Background(), evCleanupRequested, nil)
		return s.ended()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return s.step(context.Background(), s.fail(fmt.Errorf("connection to the agent lost: %w", err)), nil)
}

// ended returns the error of a session that is over: its cause, or io.EOF.
func (s *Session) ended() error {
	if s.cause != nil {
		return s.cause
	}
	return io.EOF
}

// Close ends the session, in any state, and closes its connection. The agent
// drops what it was doing for it, pinentry included. A second Close does nothing.
// The error is the session's cause, if its connection could not be closed.
func (s *Session) Close() error {
	if s.closeConn == nil {
		return nil
	}
	_ = s.closeConn() // before mu, whose holder may be blocked in a write
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.step(context.Background(), evCleanupRequested, nil)
	if s.state == stateFatal {
		return s.cause
	}
	return nil
}

// step delivers one event, and then the events that the actions cause. It returns
// the session's cause, if it has one by then. mu is held.
func (s *Session) step(ctx context.Context, ev event, line []byte) error {
	for ev != evNone {
		t := transitions[s.state][ev]
		if t.do == actViolation {
			ev = s.fail(&ViolationError{State: s.state.String(), Event: ev.String()})
			continue
		}
		s.state = t.next
		ev = s.act(ctx, t.do, line)
	}
	return s.cause
}

func (s *Session) act(ctx context.Context, do action, line []byte) event {
	switch do {
	case actDial:
		return s.dial(ctx)
	case actPresent:
		return evClientDataReceived
	case actAuthenticate:
		return s.authenticate()
	case actWrite:
		return s.write(line)
	case actReport:
		return evCleanupRequested
	case actTeardown:
		return s.teardown()
	case actNone, actIgnore, actViolation, numActions:
	}
	return evNone
}

func (s *Session) teardown() event {
	if s.closeConn == nil {
		return evCleanupComplete
	}
	if err := s.closeConn(); err != nil {
		_ = s.fail(fmt.Errorf("close the agent's socket: %w", err))
		return evCleanupError
	}
	return evCleanupComplete
}

// fail records err as the session's cause, unless it has one, and returns the event
// that reports it.
func (s *Session) fail(err error) event {
	if s.cause == nil {
		s.cause = err
	}
	return evErrorOccurred
}
