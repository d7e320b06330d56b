package remoteside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"gpg-bridge/assuan"
)

// step delivers one event and all those that its actions cause. mu is held.
func (s *session) step(ctx context.Context, ev event, line []byte, more bool) {
	for ev != evNone {
		t := transitions[s.state][ev]
		if t.do == actViolation {
			ev = s.fail(&ViolationError{State: s.state.String(), Event: ev.String()})
			continue
		}
		s.state = t.next
		s.seen.Store(uint32(t.next))
		ev, line = s.act(ctx, t.do, line, more)
	}
}

// act does what a transition demands and returns the event that it caused,
// with the line that belongs to it.
func (s *session) act(ctx context.Context, do action, line []byte, more bool) (event, []byte) {
	switch do {
	case actConnect:
		return s.connectAgent(ctx), nil
	case actGreet:
		return s.send(s.agent.Greeting(), false), nil
	case actCommand:
		return s.forwardCommand(line)
	case actData:
		return s.forward(line), nil
	case actAnswer:
		return s.forwardAnswer(line)
	case actReply:
		return s.reply(line, more), nil
	case actReport:
		return evCleanupRequested, nil
	case actTeardown:
		return s.teardown(), nil
	case actNone, actIgnore, actViolation, numActions:
	}
	return evNone, nil
}

func (s *session) connectAgent(ctx context.Context) event {
	agent, err := s.connect(ctx)
	if err != nil && ctx.Err() != nil {
		return s.fail(context.Cause(ctx))
	}
	if err != nil {
		s.unreachable = err
		agent = newNoAgent()
	}
	s.agent = agent
	return evAgentGreetingOK
}

// forwardCommand passes a command to the agent, or answers in its place.
func (s *session) forwardCommand(line []byte) (event, []byte) {
	s.commands.Add(1)
	s.noteBegun()
	if answer := guardCommand(line); answer != "" {
		return evAgentResponseComplete, []byte(answer)
	}
	s.operations.command(line)
	s.farewell = s.farewell || assuan.IsVerb(assuan.Verb(line), "BYE")
	if ev := s.forward(line); ev != evNone {
		return ev, nil
	}
	return evWriteOK, nil
}

// noteBegun tells of the first command that is the client's own.
func (s *session) noteBegun() {
	if s.begun || s.silent {
		return
	}
	if s.begun = true; s.began != nil {
		s.began()
	}
}

// forwardAnswer passes the end of an inquiry's answer to the agent. When the
// guard refuses it, the inquiry is cancelled, and the ERR with which the agent
// takes note is replaced by the one that libassuan would have given.
func (s *session) forwardAnswer(line []byte) (event, []byte) {
	if s.instead = guardAnswer(line); s.instead != "" {
		line = []byte("CAN\n")
	}
	if ev := s.forward(line); ev != evNone {
		return ev, nil
	}
	return evWriteOK, nil
}

// forward writes a line to the agent. An agent that left before the BYE which
// the client did not say has spared us the trouble.
func (s *session) forward(line []byte) event {
	err := s.agent.WriteLine(line)
	switch {
	case err == nil:
		return evNone
	case s.silent:
		return evCleanupRequested
	case errors.Is(err, io.EOF):
		err = errAgentGone
	}
	return s.fail(err)
}

// reply writes a line to the client and tells what the line means.
func (s *session) reply(line []byte, more bool) event {
	kind := assuan.KindOf(line)
	if s.instead != "" && (kind == assuan.KindOK || kind == assuan.KindERR) {
		line, s.instead = []byte(s.instead), ""
	}
	if ev := s.send(line, more && !kind.Final()); ev != evNone {
		return ev
	}
	switch kind {
	case assuan.KindOK, assuan.KindERR:
		s.operations.answer(line)
		return evResponseOKOrErr
	case assuan.KindInquire:
		return evResponseInquire
	}
	return evWriteOK
}

// send writes a line to the client, and flushes unless another one is about to
// follow: each write is an SSH packet of its own. Nobody is left to read the
// answer to a BYE that the client did not say.
func (s *session) send(line []byte, more bool) event {
	if s.silent {
		return evNone
	}
	err := s.makeRoom(line)
	if err == nil {
		_, err = s.out.Write(line)
	}
	if err == nil && !more {
		err = s.out.Flush()
	}
	switch {
	case err == nil:
		return evNone
	case s.clientDone:
		return evCleanupRequested
	}
	return s.fail(fmt.Errorf("write to the client: %w", err))
}

// makeRoom gives a burst that does not fit the buffer a greater one: it is a part
// of a bulk, and each write is an SSH packet.
func (s *session) makeRoom(line []byte) error {
	if s.out.Available() >= len(line) || s.out.Size() >= assuan.BulkSize {
		return nil
	}
	err := s.out.Flush()
	s.out = bufio.NewWriterSize(s.client, assuan.BulkSize)
	return err
}

// teardown releases both connections, the second even if the first fails. The
// agent goes first: whatever keeps the client's from closing, pinentry goes away.
func (s *session) teardown() event {
	var err error
	if s.agent != nil {
		err = s.agent.Close()
	}
	if closing := s.closeClient(); !benign(closing) {
		err = errors.Join(err, closing)
	}
	s.taken.Signal()
	if err != nil {
		_ = s.fail(fmt.Errorf("release a session: %w", err))
		return evCleanupError
	}
	return evCleanupComplete
}

// benign reports whether closing found the connection closed already: an SSH
// channel says io.EOF when its peer was first.
func benign(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// fail records the first cause and returns the event that tells of it. What
// fails because breakIO was called has breakIO's cause.
func (s *session) fail(err error) event {
	if broken := s.broken.Load(); broken != nil {
		err = *broken
	}
	if s.cause == nil {
		s.cause = err
	}
	return evErrorOccurred
}

// A ViolationError is an event that the session's table does not list for its
// state, such as an agent's line that nobody asked for.
type ViolationError struct {
	State, Event string
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("protocol violation: %s while %s", e.Event, e.State)
}
