package fakesshd

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// handshakeTimeout is how long a client may take to authenticate, as sshd's
// LoginGraceTime.
const handshakeTimeout = 30 * time.Second

// A RequestHandler answers one global request. The reply is sent by the
// caller, if one is wanted, and the next request is read after it.
type RequestHandler func(conn *Conn, req *ssh.Request) (ok bool, payload []byte)

// A ChannelHandler accepts or rejects one channel and serves it until it is
// over. It runs in a goroutine of its own; the Server waits for it.
type ChannelHandler func(conn *Conn, ch ssh.NewChannel)

// A Server is one SSH server. Set the fields, then call Start; they must not
// change afterwards.
type Server struct {
	// HostKey is a new key if it is nil.
	HostKey ssh.Signer
	// AuthorizedKeys may log in, under any user name. No other method of
	// authentication is offered.
	AuthorizedKeys []ssh.PublicKey
	// Version is the identification string, such as "SSH-2.0-OpenSSH_9.2p1";
	// "SSH-2.0-gpg-bridge_sshtest" where it is empty.
	Version string
	// Banner is shown before authentication (RFC 4252 section 5.4).
	Banner string

	// Env is the whole environment of a session ("NAME=value"), to which the
	// client's env requests are added. HOME, GNUPGHOME and PATH make this
	// server look like a host of its own.
	Env []string
	// Dir is where sessions start.
	Dir string
	// Shell runs a session: `Shell -c command`, or Shell alone; /bin/sh where
	// it is empty.
	Shell string
	// Subsystems maps the name of a subsystem to the command that serves it.
	Subsystems map[string]string

	// StreamLocalBindUnlink is sshd_config's: remove what is at the path of a
	// forward before listening there.
	StreamLocalBindUnlink bool

	// RequestHandlers and ChannelHandlers are keyed by type. Start adds the standard
	// handlers for types without an entry; a nil entry refuses the type.
	RequestHandlers map[string]RequestHandler
	ChannelHandlers map[string]ChannelHandler

	// Faults are what this server does wrong.
	Faults Faults
	// Log may be nil.
	Log *slog.Logger

	listener net.Listener
	ctx      context.Context // ends when Close is called
	cancel   context.CancelFunc
	wg       sync.WaitGroup // every goroutine of this server

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// Start listens on a free port of 127.0.0.1 and serves until Close.
func (s *Server) Start() error {
	if err := s.complete(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("fakesshd: %w", err)
	}
	s.listener = listener
	s.conns = make(map[net.Conn]struct{})
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.acceptLoop)
	return nil
}

// complete fills the fields that were left empty.
func (s *Server) complete() error {
	if s.HostKey == nil {
		signer, err := NewSigner()
		if err != nil {
			return err
		}
		s.HostKey = signer
	}
	if s.Version == "" {
		s.Version = "SSH-2.0-gpg-bridge_sshtest"
	}
	if s.Shell == "" {
		s.Shell = "/bin/sh"
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.RequestHandlers = withDefaults(s.RequestHandlers, map[string]RequestHandler{
		forwardRequest: handleForward,
		cancelRequest:  handleCancel,
	})
	s.ChannelHandlers = withDefaults(s.ChannelHandlers, map[string]ChannelHandler{
		"session":     handleSession,
		directChannel: handleDirect,
	})
	return nil
}

func withDefaults[H any](given, defaults map[string]H) map[string]H {
	all := make(map[string]H, len(given)+len(defaults))
	for name, handler := range defaults {
		all[name] = handler
	}
	for name, handler := range given {
		all[name] = handler
	}
	return all
}

// NewSigner makes an Ed25519 key, for a host or for a user.
func NewSigner() (ssh.Signer, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("fakesshd: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("fakesshd: %w", err)
	}
	return signer, nil
}

// Addr is the server's "127.0.0.1:port".
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends every connection and session, and returns when each goroutine and
// each process that the Server started has ended. Socket files stay behind, as
// sshd leaves them. A second Close is a no-op.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.listener.Close()
	s.cancel()
	s.CloseConns()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// CloseConns cuts every connection without an SSH message, as a network does. The server goes
// on.
func (s *Server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
}

func (s *Server) acceptLoop() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.track(conn) {
			_ = conn.Close()
			return
		}
		s.wg.Go(func() {
			defer s.untrack(conn)
			s.serveConn(conn)
		})
	}
}

func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) untrack(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
