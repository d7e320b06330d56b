package remoteside

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/google/uuid"
)

// MaxSessions is the most sessions that one server serves at once, and so the
// most conversations with the agent that the gpgs of one host can have open.
//
// gpg-agent does not raise its descriptor limit, which is 256 on macOS and 1024
// on most Linux systems; it has 11 descriptors open when idle and needs one per
// conversation and one for each key that it reads. At its limit it does worse
// than refuse: it spins, logging "accept failed" some 100,000 times a second,
// and PKSIGN fails. So a server stays at half of the smallest limit.
const MaxSessions = 128

// ConnectAgent opens a conversation with the local agent.
type ConnectAgent func(ctx context.Context) (Agent, error)

// A Config says how a Server serves.
type Config struct {
	Connect ConnectAgent
	Log     *slog.Logger

	// MaxSessions bounds the sessions served at once, and with them the
	// connections to the agent; 0 means the constant MaxSessions. Further clients
	// are accepted, but wait for their greeting, for which gpg has no timeout. A
	// gpg that was refused would start an agent on the host.
	MaxSessions int

	Rules     []Rule     // applied after the guard
	Observers []Observer // told in this order

	// Asking, if set, is called before the agent gets the last that it needs for the
	// use of a secret key and so may ask its user for a PIN: the command PKSIGN, or the
	// end of what PKDECRYPT is to decrypt. It returns "" to let that pass, or the ERR
	// line that the client gets instead; the operation has no Asked then. It may wait a
	// few seconds, but not after ctx has ended. Only this client waits with it, and is
	// not seen to leave meanwhile.
	Asking func(ctx context.Context, o Operation) string
}

// A Server serves the clients of one bridge. Sessions are independent of each other.
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
		config.MaxSessions = MaxSessions
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
	s := newSession(conn, srv.config, srv.fulfil)
	srv.add(s)
	defer srv.remove(s)
	report := s.run(ctx)
	srv.config.Log.Debug("session ended", "session", report.ID, "commands", report.Commands, "cause", report.Cause, "unreachable", report.Unreachable)
	for _, observer := range srv.config.Observers {
		observer.Ended(report)
	}
}

// takeSlot waits until one more session may be served, and reports whether it may be.
// A client that has to wait fulfils every Expectation; see there.
func (srv *Server) takeSlot(ctx context.Context) bool {
	select {
	case srv.slots <- struct{}{}:
	default:
		srv.fulfilAll()
		select {
		case srv.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	if ctx.Err() != nil { // what has ended the others, and so freed the slot, ends this one
		<-srv.slots
		return false
	}
	return true
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

// A Status is the current state of a session.
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

// An Expectation waits for a comment to arrive at this server. A comment that is sent
// to the socket on the host tells whether that path still leads here. It does no harm
// wherever else it arrives, since an agent ignores comments. While there are as many
// sessions as there may be, the comment would have to wait; then any client that
// arrives fulfils the expectation, since it came by the same path.
type Expectation struct {
	Comment []byte          // the line to send, with its LF
	Seen    <-chan struct{} // closed when the comment has arrived
	srv     *Server
}

// Expect returns an Expectation of a comment that nobody can guess. The caller must
// Drop it.
func (srv *Server) Expect() *Expectation {
	comment := "# gpg-bridge " + uuid.NewString()
	seen := make(chan struct{})
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.expected[comment] = seen
	return &Expectation{Comment: []byte(comment + "\n"), Seen: seen, srv: srv}
}

// Drop ends the expectation.
func (e *Expectation) Drop() {
	e.srv.mu.Lock()
	defer e.srv.mu.Unlock()
	delete(e.srv.expected, string(bytes.TrimSpace(e.Comment)))
}

// fulfil fulfils the expectation of this comment, if there is one.
func (srv *Server) fulfil(line []byte) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	comment := string(bytes.TrimSpace(line))
	if seen, ok := srv.expected[comment]; ok {
		delete(srv.expected, comment)
		close(seen)
	}
}

// fulfilAll fulfils all expectations.
func (srv *Server) fulfilAll() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for comment, seen := range srv.expected {
		delete(srv.expected, comment)
		close(seen)
	}
}
