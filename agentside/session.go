package agentside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// Timeouts of the parts that no human takes part in. The greeting has its own:
// an agent that is being stopped accepts connections and never greets. So has a
// write that the agent has to take for it to be over.
const (
	connectTimeout  = 5 * time.Second
	greetingTimeout = 5 * time.Second
	writeTimeout    = 5 * time.Second
)

// maxResponse bounds what SendCommands collects, in bytes. A response that is
// only passed on is not collected and has no such bound.
const maxResponse = 1 << 20

// writeBuffer is the size of the buffer in front of the agent. An inquiry's
// answer is collected in it and leaves in few writes.
const writeBuffer = 4096

// endpoint is where an agent listens: how to reach it, and what to show it.
type endpoint interface {
	Dial(ctx context.Context) (net.Conn, error)
	Authenticate(conn net.Conn) error
}

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

	// mu is held for one whole step with the write that its action makes, so
	// an answer cannot be recorded before the command that it answers. It is
	// never held while reading, and Close breaks the connection before it
	// asks for it.
	mu    sync.Mutex
	state state
	out   *bufio.Writer
	bulky bool  // the block that is being written has outgrown out
	cause error // why the session left its normal states; the first one
}

// connect runs the machine of a new session from the dial to the greeting and
// what else has to be said before the session is anybody's: the check.
// ctx may end it at any point.
func connect(ctx context.Context, at endpoint, check func(*Session) error) (*Session, error) {
	s := &Session{id: uuid.New(), at: at}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.closeConn() })
	err := s.greet()
	if err == nil {
		err = check(s)
	}
	if !stop() {
		err = context.Cause(ctx) // what else went wrong is its doing
	}
	if err == nil {
		err = s.settle()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// settle ends the hurry: from here on only a human's patience counts. It is an
// error when the agent said more than it was asked.
func (s *Session) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	return s.conn.SetDeadline(time.Time{})
}

// begin dials, within connectTimeout, and presents the credentials.
func (s *Session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.step(ctx, evClientConnectRequested, nil)
}

// greet reads the agent's greeting, which comments may precede.
func (s *Session) greet() error {
	for {
		line, _, err := s.ReadLine()
		if err != nil {
			return &NoGreetingError{Cause: err}
		}
		switch assuan.KindOf(line) {
		case assuan.KindComment:
		case assuan.KindOK:
			s.greeting = append([]byte(nil), line...)
			return nil
		default:
			return &NoGreetingError{Cause: fmt.Errorf("it said %q", assuan.Trim(line))}
		}
	}
}

// ID returns the session's identity.
func (s *Session) ID() uuid.UUID { return s.id }

// Greeting returns the agent's first line, an OK, with its LF.
func (s *Session) Greeting() []byte { return s.greeting }

// WriteLine sends a line with its LF: a command, or one line of the answer to
// an inquiry. D lines are held back until the END or CAN that completes the
// block, because the agent says nothing before it. A write that the table does
// not allow, such as a command before the last one was answered, is a
// *ViolationError and ends the session. After the end the error is the cause,
// or io.EOF.
func (s *Session) WriteLine(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.final() {
		return s.ended()
	}
	return s.step(context.Background(), evClientDataReceived, line)
}

// ReadLine returns the agent's next line with its LF, as soon as it is
// complete; it stays valid until the next ReadLine. more says that another line
// of the same response is already here, so that the caller may hold back its
// flush: what was in order before the agent misbehaved is never held back. A
// line behind the end of a response is one that nobody asked for: the session
// ends with it, and the response counts. After the agent closed between two
// responses the error is io.EOF.
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
		// A command that waits must not take that line for its answer.
		_ = s.step(context.Background(), evAgentDataChunk, nil)
	}
	return line, false, nil
}

// responseGoesOn reports whether the next line is here, and in order.
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
// orderly one: the agent answered BYE, or was stopped.
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

// ended is what a finished session says: its cause, or a plain end.
func (s *Session) ended() error {
	if s.cause != nil {
		return s.cause
	}
	return io.EOF
}

// Close ends the session, in any state, and releases its connection. The agent
// drops what it was doing for it, pinentry included. A later Close is a no-op.
// There is an error, the session's cause, when its connection could not be
// released.
func (s *Session) Close() error {
	if s.closeConn == nil {
		return nil
	}
	_ = s.closeConn() // first: whoever holds mu may be stuck in a write
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.step(context.Background(), evCleanupRequested, nil)
	if s.state == stateFatal {
		return s.cause
	}
	return nil
}

// step delivers one event and all those that its actions cause. It returns the
// first cause when the session has left its normal states. mu is held.
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

func (s *Session) dial(ctx context.Context) event {
	conn, err := s.at.Dial(ctx)
	if err != nil {
		return s.fail(err)
	}
	s.conn, s.closeConn = conn, sync.OnceValue(conn.Close)
	s.out = bufio.NewWriterSize(conn, writeBuffer)
	return evAgentSocketConnected
}

// authenticate presents the credentials. Its deadline covers all that follows
// up to the end of connect.
func (s *Session) authenticate() event {
	err := s.conn.SetDeadline(time.Now().Add(greetingTimeout))
	if err == nil {
		err = s.at.Authenticate(s.conn)
	}
	if err != nil {
		return s.fail(&NoGreetingError{Cause: err})
	}
	return evAgentWriteOK
}

// write sends one line. Only a line that the agent answers is flushed and
// reported: D lines wait in the buffer for the end of their block.
func (s *Session) write(line []byte) event {
	last := assuan.AnswerOf(line) != assuan.AnswerData
	err := s.hurry(line, last)
	if err == nil {
		err = s.makeRoom(line)
	}
	if err == nil {
		_, err = s.out.Write(line)
	}
	if err == nil && !last {
		return evNone
	}
	if err == nil {
		err = s.out.Flush()
	}
	if err == nil {
		err = s.relax()
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return s.fail(errTakesNothing)
	case err != nil:
		return s.fail(fmt.Errorf("write to the agent: %w", err))
	}
	return evAgentWriteOK
}

// makeRoom gives a block that does not fit the buffer a greater one, so that it
// leaves in fewer writes.
func (s *Session) makeRoom(line []byte) error {
	if s.out.Available() >= len(line) || s.out.Size() >= assuan.BulkSize {
		return nil
	}
	err := s.out.Flush()
	s.out = bufio.NewWriterSize(bulkWriter{s.conn}, assuan.BulkSize)
	return err
}

// A bulkWriter writes more at a time than an agent may take within
// writeTimeout: as long as it takes something, the time begins anew.
type bulkWriter struct{ conn net.Conn }

func (w bulkWriter) Write(p []byte) (written int, err error) {
	for {
		n, err := w.conn.Write(p[written:])
		written += n
		if n == 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
		if err := w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return written, err
		}
	}
}

// hurry bounds the write that this line leads to, if it is one that can get
// stuck. A command cannot: the agent has taken all before it, so the socket has
// room, even when the agent is stopped. A block of D lines of any size can, and
// nobody could tell its client, or see it leave, meanwhile.
func (s *Session) hurry(line []byte, last bool) error {
	overflows := s.out.Available() < len(line)
	s.bulky = s.bulky || overflows
	if !overflows && !(s.bulky && last) {
		return nil
	}
	return s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
}

// relax ends the hurry with the block.
func (s *Session) relax() error {
	if !s.bulky {
		return nil
	}
	s.bulky = false
	return s.conn.SetWriteDeadline(time.Time{})
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

// fail records the first cause and returns the event that tells of it.
func (s *Session) fail(err error) event {
	if s.cause == nil {
		s.cause = err
	}
	return evErrorOccurred
}
