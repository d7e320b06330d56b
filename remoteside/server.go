package remoteside

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/google/uuid"
)

// defaultMaxSessions is how many sessions of one bridge are served at once.
const defaultMaxSessions = 256

// ConnectAgent opens a conversation with the local agent.
type ConnectAgent func(ctx context.Context) (Agent, error)

// A Config says how a Server serves.
type Config struct {
	Connect ConnectAgent
	Log     *slog.Logger

	// MaxSessions bounds the sessions served at once, and with them the
	// connections to the agent; 0 means 256. Clients beyond it wait, accepted
	// and not yet greeted: gpg has no timeout there, and one that is refused
	// starts an agent of its own.
	MaxSessions int

	// Ended, if set, is told of every session that has ended.
	Ended func(Report)

	// Began, if set, is told of every client that gives a command: most look
	// whether there is anybody, or verify the path, and give none. Operated, if
	// set, is told of every use of a secret key. Both are called in the midst
	// of a conversation and must not block.
	Began    func()
	Operated func(Operation)
}

// A Report is what is known of a session at its end. It holds no payload.
type Report struct {
	ID          uuid.UUID
	Commands    uint64
	Began       bool  // the client gave a command, and not only BYE was said in its place
	Cause       error // nil: an orderly end
	Unreachable error // why no agent could be reached; nil when it was
}

// A Server answers the clients of one bridge. Sessions are independent.
type Server struct {
	config Config
	slots  chan struct{}

	mu       sync.Mutex
	expected map[string]chan struct{} // see Expect
	sessions map[uuid.UUID]*session
}

// NewServer returns a server without clients.
func NewServer(config Config) *Server {
	if config.MaxSessions <= 0 {
		config.MaxSessions = defaultMaxSessions
	}
	return &Server{
		config:   config,
		slots:    make(chan struct{}, config.MaxSessions),
		expected: map[string]chan struct{}{},
		sessions: map[uuid.UUID]*session{},
	}
}

// ServeConn serves one client and returns when its session has ended and conn
// is closed. It runs in the caller's goroutine; ctx ends it.
func (srv *Server) ServeConn(ctx context.Context, conn io.ReadWriteCloser) {
	if !srv.takeSlot(ctx) {
		_ = conn.Close()
		return
	}
	defer func() { <-srv.slots }()
	s := newSession(conn, srv.config.Connect, srv.witness)
	s.began, s.operations.tell = srv.config.Began, srv.config.Operated
	srv.add(s)
	defer srv.remove(s)
	cause := s.run(ctx)
	srv.config.Log.Debug("session ended", "session", s.id, "commands", s.commands.Load(), "cause", cause, "unreachable", s.unreachable)
	if srv.config.Ended != nil {
		srv.config.Ended(Report{ID: s.id, Commands: s.commands.Load(), Began: s.begun, Cause: cause, Unreachable: s.unreachable})
	}
}

// takeSlot waits until one more session may be served. A client that has to
// wait could not be the one that is expected for long, but that it came at all
// tells the same: see Expect.
func (srv *Server) takeSlot(ctx context.Context) bool {
	select {
	case srv.slots <- struct{}{}:
		return true
	default:
		srv.witnessAny()
	}
	select {
	case srv.slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (srv *Server) add(s *session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.sessions[s.id] = s
}

func (srv *Server) remove(s *session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	delete(srv.sessions, s.id)
}

// A Status is a session as it stands.
type Status struct {
	ID       uuid.UUID
	State    string
	Commands uint64
}

// Sessions returns the sessions that are being served.
func (srv *Server) Sessions() []Status {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	statuses := make([]Status, 0, len(srv.sessions))
	for _, s := range srv.sessions {
		statuses = append(statuses, Status{ID: s.id, State: state(s.seen.Load()).String(), Commands: s.commands.Load()})
	}
	return statuses
}

// An Expectation waits for a comment to arrive at this server. Sent through
// the host's socket path, it tells whether that path still leads here: an agent
// ignores comments, so it does no harm wherever it ends. When all sessions are
// busy and the comment would have to wait, any client that arrives fulfils it:
// it found the way, too.
type Expectation struct {
	Comment []byte          // the line to send, with its LF
	Seen    <-chan struct{} // closed when it arrived here
	srv     *Server
}

// Expect makes a comment that nobody can guess. The caller must Drop it.
func (srv *Server) Expect() *Expectation {
	comment := "# gpg-bridge " + uuid.NewString()
	seen := make(chan struct{})
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.expected[comment] = seen
	return &Expectation{Comment: []byte(comment + "\n"), Seen: seen, srv: srv}
}

// Drop stops the waiting.
func (e *Expectation) Drop() {
	e.srv.mu.Lock()
	defer e.srv.mu.Unlock()
	delete(e.srv.expected, string(bytes.TrimSpace(e.Comment)))
}

// witness looks whether a client's comment is an expected one.
func (srv *Server) witness(line []byte) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	comment := string(bytes.TrimSpace(line))
	if seen, ok := srv.expected[comment]; ok {
		delete(srv.expected, comment)
		close(seen)
	}
}

// witnessAny fulfils all expectations.
func (srv *Server) witnessAny() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for comment, seen := range srv.expected {
		delete(srv.expected, comment)
		close(seen)
	}
}
