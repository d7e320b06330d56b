package remoteside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"gpg-bridge/assuan"
)

// step delivers one event, and then the events that the actions cause. mu is held.
func (s *session) step(ctx context.Context, ev event, in input) {
	for ev != evNone {
		t := transitions[s.state][ev]
		if t.do == actViolation {
			ev = s.fail(&ViolationError{State: s.state.String(), Event: ev.String()})
			continue
		}
		s.state = t.next
		s.seen.Store(uint32(t.next))
		ev, in = s.act(ctx, t.do, in)
	}
}

// act carries out an action and returns the event that it caused, with the line that
// the event is about.
func (s *session) act(ctx context.Context, do action, in input) (event, input) {
	switch do {
	case actConnect:
		return s.connectAgent(ctx), input{}
	case actGreet:
		return s.send(s.agent.Greeting(), false), input{}
	case actCommand:
		return s.forwardCommand(ctx, in.command)
	case actData:
		return s.forward(in.line), input{}
	case actAnswer:
		return s.forwardAnswer(ctx, in), input{}
	case actReply:
		return s.reply(in.line, in.more), input{}
	case actReport:
		return evCleanupRequested, input{}
	case actTeardown:
		return s.teardown(), input{}
	case actNone, actIgnore, actViolation, numActions:
	}
	return evNone, input{}
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

// forwardCommand passes a command to the agent, or answers it instead of the agent.
func (s *session) forwardCommand(ctx context.Context, c assuan.Command) (event, input) {
	s.commands.Add(1)
	s.noteBegun(c)
	c, answer := s.judge(c)
	if answer == "" {
		answer = s.operations.command(ctx, c)
	}
	if answer != "" {
		return evAgentResponseComplete, input{line: []byte(answer)}
	}
	if c.Is("BYE") {
		s.leaving.on(clientBye)
	}
	return s.forwardLast(c.Line), input{}
}

// noteBegun tells observers of the first command that uses the agent.
func (s *session) noteBegun(c assuan.Command) {
	if s.begun || c.Is("BYE") || asksRestricted(c) {
		return
	}
	s.begun = true
	for _, observer := range s.observers {
		observer.Began(s.id)
	}
}

// forwardAnswer passes the end of the answer to an inquiry to the agent. If the guard
// or Config.Asking refuses it, the inquiry is cancelled instead, and reply replaces
// the agent's answer to that by the refusal.
func (s *session) forwardAnswer(ctx context.Context, end input) event {
	s.refusal = guardAnswer(end.answer)
	if s.refusal == "" {
		s.refusal = s.operations.inquired(ctx, end.answer)
	}
	if s.refusal != "" {
		return s.forwardLast([]byte("CAN\n"))
	}
	return s.forwardLast(end.line)
}

// forwardLast writes a line that the agent answers.
func (s *session) forwardLast(line []byte) event {
	if ev := s.forward(line); ev != evNone {
		return ev
	}
	return evWriteOK
}

// forward writes a line to the agent. When we say BYE ourselves and the agent has
// already gone, the session ends in order.
func (s *session) forward(line []byte) event {
	err := s.agent.WriteLine(line)
	switch {
	case err == nil:
		return evNone
	case s.leaving.byeForIt():
		return evCleanupRequested
	case errors.Is(err, io.EOF):
		err = errAgentGone
	}
	return s.fail(err)
}

// reply writes a line to the client and returns the event that the line means.
func (s *session) reply(line []byte, more bool) event {
	kind := assuan.KindOf(line)
	if s.refusal != "" && kind.Complete() {
		line, s.refusal = []byte(s.refusal), ""
		kind = assuan.KindOf(line)
	}
	if ev := s.send(line, more && !kind.Final()); ev != evNone {
		return ev
	}
	switch kind {
	case assuan.KindOK, assuan.KindERR:
		s.operations.answer(line, kind)
		return evResponseOKOrErr
	case assuan.KindInquire:
		return evResponseInquire
	}
	return evWriteOK
}

// send writes a line to the client, and flushes unless another one follows at once,
// since each write becomes an SSH packet of its own. The reply to a BYE that we
// said ourselves is dropped.
func (s *session) send(line []byte, more bool) event {
	if s.leaving.byeForIt() {
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
	case s.leaving.closed():
		return evCleanupRequested
	}
	return s.fail(fmt.Errorf("write to the client: %w", err))
}

// makeRoom replaces the buffer with a larger one if the line does not fit, so that
// large amounts of data leave in fewer writes.
func (s *session) makeRoom(line []byte) error {
	if s.out.Available() >= len(line) || s.out.Size() >= assuan.BulkSize {
		return nil
	}
	err := s.out.Flush()
	s.out = bufio.NewWriterSize(s.client, assuan.BulkSize)
	return err
}
