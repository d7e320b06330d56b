package agentside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"gpg-bridge/assuan"
)

// Timeouts of what does not wait for a human. The greeting has its own: an agent
// that is being stopped accepts connections and never greets.
const (
	connectTimeout  = 5 * time.Second
	greetingTimeout = 5 * time.Second
)

// endpoint is where an agent listens.
type endpoint interface {
	Dial(ctx context.Context) (net.Conn, error)
	Authenticate(conn net.Conn) error
}

// connect makes a new session and runs its machine up to the greeting, and then
// check, before anybody else gets the session. The end of ctx ends it at any point.
func connect(ctx context.Context, at endpoint, check func(*Session) error) (*Session, error) {
	s := &Session{id: uuid.New(), at: at}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.closeConn() })
	err := s.greet()
	if err == nil {
		err = check(s)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = &NoGreetingError{Cause: err} // it greeted, and then did not answer
		}
	}
	if !stop() {
		err = context.Cause(ctx) // it closed the connection: other errors follow from that
	}
	if err == nil {
		err = s.endDeadlines()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// endDeadlines lifts the deadline of the greeting and the check: from here on a
// human may be asked. It is an error if the agent has sent more than it was asked
// for.
func (s *Session) endDeadlines() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	return s.conn.SetDeadline(time.Time{})
}

// begin dials and presents the credentials, within connectTimeout.
func (s *Session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.step(ctx, evClientConnectRequested, nil)
}

// greet reads the agent's greeting, and any comments before it.
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

func (s *Session) dial(ctx context.Context) event {
	conn, err := s.at.Dial(ctx)
	if err != nil {
		return s.fail(err)
	}
	s.conn, s.closeConn = conn, sync.OnceValue(conn.Close)
	s.out = bufio.NewWriterSize(conn, writeBuffer)
	return evAgentSocketConnected
}

// authenticate presents the credentials. The deadline that it sets is for
// everything up to the end of connect.
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
