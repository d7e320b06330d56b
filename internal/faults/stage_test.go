//go:build unix

package faults

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/agenttest"
	"gpg-bridge/remoteside"
)

const greeting = "OK Pleased to meet you\n"

// errShutdown is why a bridge was ended, and errCut is sshfwd's cause where its
// connection has.
var (
	errShutdown = errors.New("the bridge was shut down")
	errCut      = errors.New("the ssh connection has ended")
)

// speech is how an agent says what it says.
type speech int

const (
	inOnePiece speech = iota
	byteByByte
	behindAFlood // of 10 MB of D lines
)

const flood = 10 << 20

// A stage is both machines with a client and an agent that are played, and a
// neighbour: another client, whose agent always obeys.
type stage struct {
	dir    string
	srv    *remoteside.Server
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // everything that was started for it

	socket  string // of the agent that is played
	agents  *net.UnixListener
	front   *agenttest.Front // before it, or nil
	tunnel  *tunnel          // to the clients, or nil
	fillers []net.Conn       // what the agent's backlog is full of

	client, neighbour *side
	agent             *side // nil before it was connected to
	greeted           bool  // the client, by the agent played
	speech            speech
	pour              *pour
	asked             chan struct{} // the local side is asked for its keys
	grips             chan []string // and says them

	mu      sync.Mutex
	reports map[uuid.UUID]remoteside.Report
	other   uuid.UUID     // the neighbour's session
	served  chan struct{} // closed when the server has let go of the client
}

// newStage returns a stage whose neighbour has been served, and whose client
// has just connected. Its pieces are closed by end.
func newStage(t testing.TB, dir string, state situation, f fault) (*stage, error) {
	s := &stage{
		dir: dir, socket: filepath.Join(dir, "S.agent"), asked: make(chan struct{}, 1), grips: make(chan []string),
		reports: map[uuid.UUID]remoteside.Report{}, served: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if err := s.listen(state.backlog); err != nil {
		return nil, err
	}
	path := s.socket
	if f.front && state.backlog == 0 { // a front has a backlog of its own
		s.front = agenttest.StartNative(t, s.socket, [16]byte([]byte("0123456789abcdef")))
		path = s.front.SocketFile
	}
	if f.ssh {
		tunnel, err := newTunnel()
		if err != nil {
			return nil, err
		}
		s.tunnel = tunnel
	}
	agent := &agentside.Agent{Locator: &agentside.Locator{AgentSocket: path}}
	s.srv = remoteside.NewServer(remoteside.Config{
		Log: slog.New(slog.DiscardHandler), MaxSessions: state.sessions, Ended: s.ended,
		Connect: func(ctx context.Context) (remoteside.Agent, error) {
			session, err := agent.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return remoteside.Compat(ctx, session, s.keygrips), nil
		},
	})
	if err := s.seatNeighbour(); err != nil {
		return nil, fmt.Errorf("the neighbour: %w", err)
	}
	if state.before != nil {
		if err := state.before(s); err != nil {
			return nil, err
		}
	}
	var err error
	s.client, err = s.connect(func() { close(s.served) })
	return s, err
}

// listen makes the agent's socket, with a backlog of so many; 0 is the default.
func (s *stage) listen(backlog int) error {
	if backlog == 0 {
		backlog = 64
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), s.socket)
	defer func() { _ = file.Close() }()
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: s.socket}); err != nil {
		return err
	}
	if err := syscall.Listen(fd, backlog); err != nil {
		return err
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	s.agents = listener.(*net.UnixListener)
	return nil
}

// restartUnix is the restart of an agent on a Unix socket.
func (s *stage) restartUnix() error {
	for _, c := range s.fillers {
		_ = c.Close()
	}
	s.fillers = nil
	return errors.Join(s.agents.Close(), os.Remove(s.socket), s.listen(0))
}

// keygrips is the local side's answer to Compat: it takes as long as the test
// wants.
func (s *stage) keygrips(ctx context.Context) ([]string, error) {
	s.asked <- struct{}{}
	select {
	case grips := <-s.grips:
		return grips, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *stage) ended(r remoteside.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[r.ID] = r
}

// report returns what is known of the client's session, if it has ended.
func (s *stage) report() (remoteside.Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.reports {
		if id != s.other {
			return r, true
		}
	}
	return remoteside.Report{}, false
}

// connect connects one more client. ended is called when it is served no more.
func (s *stage) connect(ended func()) (*side, error) {
	ours, theirs, err := s.pair()
	if err != nil {
		return nil, err
	}
	s.work.Go(func() {
		defer ended()
		s.srv.ServeConn(s.ctx, theirs)
	})
	return newSide(ours), nil
}

// pair is a connection of a client's: through SSH, or a TCP socket, which can be
// reset. Little fits into it.
func (s *stage) pair() (ours, theirs conn, err error) {
	if s.tunnel != nil {
		return s.tunnel.open()
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = listener.Close() }()
	dialled, err := net.DialTCP("tcp4", nil, listener.Addr().(*net.TCPAddr))
	if err != nil {
		return nil, nil, err
	}
	accepted, err := listener.AcceptTCP()
	if err != nil {
		return nil, nil, errors.Join(err, dialled.Close())
	}
	return dialled, accepted, errors.Join(dialled.SetReadBuffer(1<<16), accepted.SetWriteBuffer(1<<16))
}

// accept waits for a session to connect to the agent.
func (s *stage) accept() (*side, error) {
	_ = s.agents.SetDeadline(time.Now().Add(patience))
	c, err := s.agents.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return newSide(c), nil
}

// seatNeighbour brings the neighbour to its first answer.
func (s *stage) seatNeighbour() error {
	neighbour, err := s.connect(func() {})
	if err != nil {
		return err
	}
	s.neighbour = neighbour
	agent, err := s.accept()
	if err != nil {
		return err
	}
	s.work.Go(func() { obey(agent) })
	if err := neighbour.receive(greeting); err != nil {
		return err
	}
	s.other = s.srv.Sessions()[0].ID
	return s.askNeighbour()
}

// obey is an agent that greets, and answers OK until it is left.
func obey(agent *side) {
	defer agent.close()
	if agent.send(greeting) == nil {
		obeyed(agent)
	}
}

func obeyed(agent *side) {
	for {
		if _, err := agent.receiveUntil("\n"); err != nil || agent.send("OK\n") != nil {
			return
		}
	}
}

// askNeighbour has the neighbour complete a command.
func (s *stage) askNeighbour() error {
	if err := s.neighbour.send("NOP\n"); err != nil {
		return err
	}
	return s.neighbour.receive("OK\n")
}

// at returns the state in which the client's session is, "" if it has none.
func (s *stage) at() string {
	for _, session := range s.srv.Sessions() {
		if session.ID != s.other {
			return session.State
		}
	}
	return ""
}

// rests waits until the client's session is in a state.
func (s *stage) rests(state string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s.at() == state {
			return nil
		}
	}
	return fmt.Errorf("it is in %q and not in %q", s.at(), state)
}

// say has the agent say this, in its way of speaking.
func (s *stage) say(text string) error {
	switch s.speech {
	case byteByByte:
		for i := range len(text) {
			if err := s.agent.send(text[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	case behindAFlood:
		for range flood / len(floodPiece) {
			if err := s.agent.send(floodPiece); err != nil {
				return err
			}
		}
	}
	return s.agent.send(text)
}

var floodPiece = string(slices.Repeat(dataLine, 64))

// dataLine has 1024 bytes with its LFs: two lines.
var dataLine = append(append(append([]byte("D "), slices.Repeat([]byte("x"), 900)...), '\n'), append([]byte("D "), append(slices.Repeat([]byte("y"), 118), '\n')...)...)

// hears requires that the client gets what the agent said.
func (s *stage) hears(text string) error {
	total, err := s.client.receiveUntil(text)
	if err == nil && s.speech == behindAFlood && total < flood {
		err = fmt.Errorf("heard %d bytes only", total)
	}
	return err
}

// end closes everything and waits for it.
func (s *stage) end() {
	s.cancel(errShutdown)
	if s.pour != nil {
		s.pour.once.Do(func() { close(s.pour.stop) })
	}
	for _, side := range []*side{s.client, s.neighbour, s.agent} {
		if side != nil {
			side.close()
		}
	}
	if s.pour != nil {
		s.pour.end()
	}
	if s.agents != nil {
		_ = s.agents.Close()
	}
	for _, c := range s.fillers {
		_ = c.Close()
	}
	if s.front != nil {
		_ = s.front.Close()
	}
	if s.tunnel != nil {
		s.tunnel.close()
	}
	s.work.Wait()
}

// A tunnel is an SSH connection whose server opens the channels of a forwarded
// socket. The server's ends are the clients'.
type tunnel struct {
	host     *ssh.ServerConn
	local    ssh.Conn
	arriving <-chan ssh.NewChannel
	wire     net.Conn
	running  sync.WaitGroup
}

// forwarded is the type of a forwarded socket's channels (OpenSSH PROTOCOL 2.4).
const forwarded = "forwarded-streamlocal@openssh.com"

func newTunnel() (*tunnel, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	wire, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	hostWire, err := listener.Accept()
	if err != nil {
		return nil, errors.Join(err, wire.Close())
	}
	t := &tunnel{wire: wire}
	hosted := make(chan error, 1)
	t.running.Go(func() {
		host, channels, requests, err := ssh.NewServerConn(hostWire, config)
		t.host = host
		hosted <- err
		if err == nil {
			t.running.Go(func() { ssh.DiscardRequests(requests) })
			for channel := range channels {
				_ = channel.Reject(ssh.Prohibited, "none")
			}
		}
	})
	local, channels, requests, err := ssh.NewClientConn(wire, "host", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	if err = errors.Join(err, <-hosted); err != nil {
		return nil, err
	}
	t.local, t.arriving = local, channels
	t.running.Go(func() { ssh.DiscardRequests(requests) })
	return t, nil
}

func (t *tunnel) open() (ours, theirs conn, err error) {
	type opened struct {
		ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	result := make(chan opened, 1)
	t.running.Go(func() {
		channel, requests, err := t.host.OpenChannel(forwarded, nil)
		result <- opened{channel, requests, err}
	})
	arrived, ok := <-t.arriving
	if !ok {
		return nil, nil, io.ErrUnexpectedEOF
	}
	accepted, requests, err := arrived.Accept()
	there := <-result
	if err = errors.Join(err, there.err); err != nil {
		return nil, nil, err
	}
	t.running.Go(func() { ssh.DiscardRequests(requests) })
	t.running.Go(func() { ssh.DiscardRequests(there.requests) })
	return there.Channel, accepted, nil
}

// cut ends the connection without a word of SSH's.
func (t *tunnel) cut() { _ = t.wire.Close() }

func (t *tunnel) close() {
	_ = t.local.Close()
	_ = t.host.Close()
	t.running.Wait()
}
