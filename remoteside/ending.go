package remoteside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A session ends by its table, through Closing. What leads there comes from three
// sides: the client leaves (leaving.go), a connection ends or fails (lost), or
// somebody else wants the session to end (breakIO).

// lingerTime is how long a session lives on after the client's last byte. A
// client that is gone and one that only closed its sending half look the same,
// so a pending answer may still arrive; but an open pinentry, which nobody
// waits for any more, must go away.
const lingerTime = 500 * time.Millisecond

// The causes when one side left while the other waited for it.
var (
	errClientGone = errors.New("the client left before the agent had answered")
	errAgentGone  = errors.New("the agent left before it had answered")
)

// breakIO closes both connections from outside the machine, without its lock; the
// pumps notice and do the rest. The agent goes first: closing it never waits,
// whatever the client's link is like. Only the first call's cause counts, and it
// counts more than the errors of the connections that it closed.
func (s *session) breakIO(cause error) {
	s.noteBroken(cause)
	_ = s.agent.Close()
	_ = s.closeClient()
}

// noteBroken records why the connections are about to be closed. It comes before
// closing them, so that a pump whose connection fails finds the reason.
func (s *session) noteBroken(cause error) { s.broken.CompareAndSwap(nil, &cause) }

// lost delivers the end of a connection, or its failure.
func (s *session) lost(ctx context.Context, err error) {
	s.step(ctx, s.lostEvent(err), input{})
}

// lostEvent tells what the end of a connection means. It is an orderly end of the
// session when the agent closed between two responses, and when the client has
// left after BYE.
func (s *session) lostEvent(err error) event {
	closed, bye, eof := s.leaving.closed(), s.leaving.bye(), errors.Is(err, io.EOF)
	switch {
	case s.state.final():
		return evCleanupRequested // it has ended already, and has its cause
	case s.broken.Load() != nil && bye:
		return evCleanupRequested
	case s.broken.Load() != nil:
		return s.fail(err) // the cause is breakIO's
	case closed && !bye:
		return s.fail(errClientGone)
	case s.state == stateBufferingInquire && eof:
		return s.fail(errAgentGone)
	case closed, eof, errors.Is(err, net.ErrClosed):
		return evCleanupRequested
	}
	return s.fail(err)
}

// isOver reports whether the agent has answered a BYE and is about to close. As
// for libassuan, nothing that the client sent after its BYE counts.
func (s *session) isOver() bool { return s.leaving.bye() && s.state == stateReady }

// sayBye sends BYE for a client that has left without it, as any other command;
// the agent then closes.
func (s *session) sayBye(ctx context.Context) {
	s.leaving.on(clientNoBye)
	s.deliver(ctx, []byte("BYE\n"))
}

// teardown closes both connections, the second even if the first fails. The agent's
// is closed first, so that pinentry goes away even if closing the client's blocks.
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

// benign reports whether the error of a Close only means that the connection was
// closed already: an SSH channel returns io.EOF if its peer closed it first.
func benign(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// fail records err as the session's cause, unless it has one, and returns the event
// that reports it. After breakIO the cause is breakIO's, since err is a consequence.
func (s *session) fail(err error) event {
	if broken := s.broken.Load(); broken != nil {
		err = *broken
	}
	if s.cause == nil {
		s.cause = err
	}
	return evErrorOccurred
}

// A ViolationError says that an event came in a state for which the session's table
// does not list it, such as a line of the agent's that nobody asked for.
type ViolationError struct {
	State, Event string
}

func (e *ViolationError) Error() string {
	return fmt.Sprintf("protocol violation: %s while %s", e.Event, e.State)
}
