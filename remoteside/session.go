package remoteside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// writeBuffer is the size, in bytes, of the buffer for what is sent to the client.
// A burst that fits leaves in one write; together with the SSH framing, that fits
// the 4 KiB that x/crypto/ssh writes at once.
const writeBuffer = 4000

// A session is one client's conversation. Only its pumps, run's two goroutines,
// step the machine.
type session struct {
	id        uuid.UUID
	client    io.ReadWriteCloser
	connect   ConnectAgent
	rules     []Rule
	observers []Observer
	comment   func(line []byte) // called with the client's comments; see Server.Expect

	closeClient func() error
	agent       Agent // set by actConnect, before the pumps start

	// mu is held for one whole step, including the write that its action makes.
	// It is never held while reading, and breakIO never locks it. Lock order: a
	// session's mu, then its agent's.
	mu          sync.Mutex
	state       state
	cause       error             // the first reason for which the session left its normal states
	in          assuan.LineBuffer // filled by pumpClient; both pumps take lines from it
	out         *bufio.Writer
	taken       sync.Cond // a line was taken from in, or the session has ended
	leaving     clientState
	refusal     string // not "": the inquiry was cancelled, and this is the client's answer instead of the agent's
	begun       bool   // the client has used the agent
	unreachable error  // why agent is a noAgent
	operations  operations

	linger   *time.Timer           // calls breakIO after lingerTime; owned by run's goroutine
	broken   atomic.Pointer[error] // see breakIO
	seen     atomic.Uint32         // a copy of state, to be read while a blocked write holds mu
	commands atomic.Uint64
}

func newSession(client io.ReadWriteCloser, config Config, comment func([]byte)) *session {
	s := &session{
		id:          uuid.New(),
		client:      client,
		connect:     config.Connect,
		rules:       config.Rules,
		observers:   config.Observers,
		comment:     comment,
		closeClient: sync.OnceValue(client.Close),
		out:         bufio.NewWriterSize(client, writeBuffer),
	}
	s.operations = operations{session: s.id, observers: config.Observers, asking: config.Asking}
	s.taken.L = &s.mu
	return s
}

// An input is the line that an event is about. A client's line is parsed in deliver,
// before it enters the machine, and nowhere after that.
type input struct {
	line    []byte         // with its LF
	more    bool           // of the agent's: another complete line was already read
	command assuan.Command // of the client's, outside an inquiry
	answer  assuan.Answer  // of the client's, inside an inquiry
}

// run owns the session: it connects to the agent, runs the pumps until both sides
// have ended, and returns a report. When ctx ends, so does run.
func (s *session) run(ctx context.Context) Report {
	stopClient := context.AfterFunc(ctx, func() {
		s.noteBroken(context.Cause(ctx))
		_ = s.closeClient()
	})
	defer stopClient()
	s.mu.Lock()
	s.step(ctx, evClientSocketConnected, input{})
	ended := s.state.final()
	s.mu.Unlock()
	if !ended {
		stopBoth := context.AfterFunc(ctx, func() { s.breakIO(context.Cause(ctx)) })
		defer stopBoth()
		var agentPump sync.WaitGroup
		agentPump.Go(func() { s.pumpAgent(ctx) })
		s.pumpClient(ctx)
		agentPump.Wait()
	}
	if s.linger != nil {
		s.linger.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if lazy, ok := s.agent.(*lazyAgent); ok {
		s.unreachable = lazy.unreachable()
	}
	s.operations.end()
	return Report{ID: s.id, Commands: s.commands.Load(), Began: s.begun, Cause: s.cause, Unreachable: s.unreachable}
}

// pumpClient reads the client until the client or the session has ended. It also
// reads while the agent works, as long as the buffer has room, since it could not
// notice otherwise that the client leaves.
//
// Two cases are noticed later. A client that leaves after sending 32 KiB of further
// commands, which no gpg does, is noticed when the agent has answered; the agent
// itself would not notice it either while it has commands to read. A client
// that leaves while the agent does not read its answer to an inquiry is noticed when
// that write times out.
func (s *session) pumpClient(ctx context.Context) {
	for {
		space := s.awaitSpace()
		if len(space) == 0 {
			return
		}
		n, err := s.client.Read(space)
		if !s.received(ctx, n, err) {
			return
		}
	}
}

// awaitSpace waits until there is space to read into. It returns none when the
// session has ended.
func (s *session) awaitSpace() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.state.final() {
		if space := s.in.Space(); len(space) > 0 {
			return space
		}
		s.taken.Wait()
	}
	return nil
}

// received handles what pumpClient has read, and reports whether to read on.
func (s *session) received(ctx context.Context, n int, err error) bool {
	done := errors.Is(err, io.EOF)
	if done {
		// Before mu, whose holder may be blocked in a write to this client.
		s.linger = time.AfterFunc(lingerTime, func() { s.breakIO(errClientGone) })
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Commit(n)
	if done {
		s.leaving.on(clientEOF)
		s.operations.leave()
	}
	s.drain(ctx)
	if err != nil {
		s.lost(ctx, fmt.Errorf("connection to the client lost: %w", err))
	}
	return err == nil && !done && !s.state.final()
}

// pumpAgent reads the agent until the agent or the session has ended.
func (s *session) pumpAgent(ctx context.Context) {
	for {
		line, more, err := s.agent.ReadLine()
		if !s.answered(ctx, line, more, err) {
			return
		}
	}
}

// answered handles what pumpAgent has read, and then the client's lines that had to
// wait for that. It reports whether to read on.
func (s *session) answered(ctx context.Context, line []byte, more bool, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lost(ctx, err)
		return false
	}
	s.step(ctx, evAgentResponseComplete, input{line: line, more: more})
	s.drain(ctx)
	return !s.state.final()
}

// drain gives the client's lines to the machine for as long as it takes them.
func (s *session) drain(ctx context.Context) {
	defer s.taken.Signal()
	for s.state.takesLines() && !s.isOver() {
		line, err := s.in.Next()
		if err != nil {
			s.step(ctx, s.fail(fmt.Errorf("the client: %w", err)), input{})
			return
		}
		if line == nil {
			s.incomplete(ctx)
			return
		}
		s.in.Take(line)
		s.deliver(ctx, line)
	}
}

// deliver gives the machine one complete line of the client's.
func (s *session) deliver(ctx context.Context, line []byte) {
	switch {
	case assuan.Ignorable(line):
		s.comment(line)
	case s.state == stateBufferingInquire:
		in := input{line: line, answer: assuan.AnswerOf(line)}
		if continuesAnswer(in) {
			s.step(ctx, evClientDataPartial, in)
		} else {
			s.step(ctx, evClientDataComplete, in)
		}
	default:
		if s.state == stateReady {
			s.step(ctx, evClientDataStart, input{})
		}
		s.step(ctx, evClientDataComplete, input{line: line, command: assuan.ParseCommand(line)})
	}
}

// incomplete handles that there is no complete line of the client's left.
func (s *session) incomplete(ctx context.Context) {
	switch {
	case s.leaving.closed() && s.state == stateReady:
		s.sayBye(ctx)
	case s.leaving.closed():
		s.step(ctx, evCleanupRequested, input{})
	case s.state == stateReady && beginsCommand(s.in.Pending()):
		s.step(ctx, evClientDataStart, input{})
	case s.state == stateBufferingCommand:
		s.step(ctx, evClientDataPartial, input{})
	}
}
