package remoteside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// writeBuffer is the size of the buffer in front of the client, in bytes. A
// burst that fits leaves as one write; with its SSH framing it also fits the
// 4 KiB that x/crypto/ssh writes at once.
const writeBuffer = 4000

// patience is how long a session lives on after the client's last byte. A
// client that is gone and one that only closed its sending half look the same,
// so a pending answer may still arrive; but an open pinentry, which nobody
// waits for any more, must go away.
const patience = 500 * time.Millisecond

// The causes when one side left while the other waited for it.
var (
	errClientGone = errors.New("the client left before the agent had answered")
	errAgentGone  = errors.New("the agent left before it had answered")
)

// A session is one client's conversation. Its pumps, run's two goroutines, are
// the only ones that step the machine.
type session struct {
	id      uuid.UUID
	client  io.ReadWriteCloser
	connect ConnectAgent
	comment func(line []byte) // called with the client's comments; see Server.Expect

	closeClient func() error
	agent       Agent // set by actConnect, before the pumps start

	// mu is held for one whole step with the write that its action makes. It
	// is never held while reading, and breakIO never takes it. Lock order: a
	// session's mu, then its agent's.
	mu          sync.Mutex
	state       state
	cause       error             // why the session left its normal states; the first one
	in          assuan.LineBuffer // filled by pumpClient, taken from by both pumps
	out         *bufio.Writer
	taken       sync.Cond // a line was taken from in, or the session ended
	instead     string    // what the client gets for the agent's next OK or ERR
	clientDone  bool      // the client has sent its last byte
	farewell    bool      // BYE was said
	silent      bool      // it was said in the client's place: the answer is nobody's
	unreachable error     // why noAgent stands in
	operations  operations

	begun bool   // the client has given a command
	began func() // called then; may be nil

	impatience *time.Timer // breaks the connections when patience is over; run's

	broken   atomic.Pointer[error] // why the connections were closed from outside
	seen     atomic.Uint32         // a copy of state, so that a stuck write cannot hide it
	commands atomic.Uint64
}

func newSession(client io.ReadWriteCloser, connect ConnectAgent, comment func([]byte)) *session {
	s := &session{
		id:          uuid.New(),
		client:      client,
		connect:     connect,
		comment:     comment,
		closeClient: sync.OnceValue(client.Close),
		out:         bufio.NewWriterSize(client, writeBuffer),
	}
	s.taken.L = &s.mu
	return s
}

// run owns the session: it connects to the agent, pumps until both sides have
// ended, and returns why; nil is an orderly end. When ctx ends, so does run.
func (s *session) run(ctx context.Context) error {
	stopClient := context.AfterFunc(ctx, func() {
		s.noteBroken(context.Cause(ctx))
		_ = s.closeClient()
	})
	defer stopClient()
	s.mu.Lock()
	s.step(ctx, evClientSocketConnected, nil, false)
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
	if s.impatience != nil {
		s.impatience.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operations.end()
	return s.cause
}

// breakIO closes both connections; the pumps wake and do the rest. The first
// cause counts, before whatever the broken connections then say. The agent goes
// first: closing it never waits, whatever the client's link is like.
func (s *session) breakIO(cause error) {
	s.noteBroken(cause)
	_ = s.agent.Close()
	_ = s.closeClient()
}

// noteBroken says why, before it can be seen that.
func (s *session) noteBroken(cause error) { s.broken.CompareAndSwap(nil, &cause) }

// pumpClient reads the client until it, or the session, has ended. It reads on
// while the agent works, so far as the buffer has room: only so is a client
// that leaves noticed. One that leaves 32 KiB of unread commands behind, which no
// gpg does, is noticed when the agent has answered, and so served as the agent
// itself would: what it reads in its socket's buffer is a command, whoever is
// still there. One that leaves while the agent takes nothing of its answer is
// noticed when that write is given up.
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

// awaitSpace returns room to read into, or none when the session has ended.
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

// received takes over what pumpClient has read, and reports whether there can
// be more.
func (s *session) received(ctx context.Context, n int, err error) bool {
	done := errors.Is(err, io.EOF)
	if done {
		// Before mu is asked for: whoever holds it may be stuck in a write to
		// this very client.
		s.impatience = time.AfterFunc(patience, func() { s.breakIO(errClientGone) })
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Commit(n)
	s.clientDone = done
	s.drain(ctx)
	if err != nil {
		s.lost(ctx, fmt.Errorf("connection to the client lost: %w", err))
	}
	return err == nil && !s.clientDone && !s.state.final()
}

// pumpAgent reads the agent until it has closed.
func (s *session) pumpAgent(ctx context.Context) {
	for {
		line, more, err := s.agent.ReadLine()
		if !s.answered(ctx, line, more, err) {
			return
		}
	}
}

// answered takes over what pumpAgent has read, then the lines of the client's
// that waited for it, and reports whether there can be more.
func (s *session) answered(ctx context.Context, line []byte, more bool, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lost(ctx, err)
		return false
	}
	s.step(ctx, evAgentResponseComplete, line, more)
	s.drain(ctx)
	return !s.state.final()
}

// lost delivers the end of a connection. It is an orderly one when the agent
// closed between two responses, and whenever nobody is left to be served.
func (s *session) lost(ctx context.Context, err error) {
	ev := evCleanupRequested
	switch {
	case s.state.final():
	case s.broken.Load() != nil:
		if !s.farewell {
			_ = s.fail(err) // the cause is breakIO's
		}
	case s.clientDone && !s.farewell:
		_ = s.fail(errClientGone)
	case s.state == stateBufferingInquire && errors.Is(err, io.EOF):
		ev = s.fail(errAgentGone)
	case s.clientDone, errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
	default:
		ev = s.fail(err)
	}
	s.step(ctx, ev, nil, false)
}

// drain hands the client's lines to the machine for as long as it takes them.
func (s *session) drain(ctx context.Context) {
	defer s.taken.Signal()
	for s.state.takesLines() && !s.parting() {
		line, err := s.in.Next()
		if err != nil {
			s.step(ctx, s.fail(fmt.Errorf("the client: %w", err)), nil, false)
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

// parting reports whether the agent has taken note of a BYE, and is about to
// close: as for libassuan, nothing that the client sent behind it counts.
func (s *session) parting() bool { return s.farewell && s.state == stateReady }

// deliver gives the machine one complete line.
func (s *session) deliver(ctx context.Context, line []byte) {
	switch {
	case assuan.Ignorable(line):
		s.comment(line)
	case s.state == stateBufferingInquire && continuesAnswer(line):
		s.step(ctx, evClientDataPartial, line, true)
	default:
		if s.state == stateReady {
			s.step(ctx, evClientDataStart, nil, false)
		}
		s.step(ctx, evClientDataComplete, line, false)
	}
}

// incomplete tells the machine that a part of a line is all there is.
func (s *session) incomplete(ctx context.Context) {
	switch {
	case s.clientDone && s.state == stateReady:
		s.part(ctx)
	case s.clientDone:
		s.step(ctx, evCleanupRequested, nil, false)
	case s.state == stateReady && beginsCommand(s.in.Pending()):
		s.step(ctx, evClientDataStart, nil, false)
	case s.state == stateBufferingCommand:
		s.step(ctx, evClientDataPartial, nil, false)
	}
}

// part says BYE in the place of a client that left without it, as any other
// command; the agent then closes.
func (s *session) part(ctx context.Context) {
	if !s.farewell {
		s.silent = true
		s.deliver(ctx, []byte("BYE\n"))
	}
}
