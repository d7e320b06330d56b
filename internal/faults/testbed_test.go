//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
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

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/agentsocket"
	"gpg-bridge/remoteside"
	"gpg-bridge/remoteside/compat"
)

const greeting = "OK Pleased to meet you\n"

// errShutdown is the cause when a bridge was ended, and errCut is sshfwd's when its
// connection has ended.
var (
	errShutdown = errors.New("the bridge was shut down")
	errCut      = errors.New("the ssh connection has ended")
)

// speech is the way in which an agent sends its answers.
type speech int

const (
	inOnePiece speech = iota
	byteByByte
	behindAFlood // of 10 MB of D lines
)

const flood = 10 << 20

// A testbed is both machines between a fake client and a fake agent, and a neighbour:
// another client, whose agent always answers.
type testbed struct {
	dir    string
	srv    *remoteside.Server
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // everything that was started for it

	socket  string // of the fake agent
	agents  *net.UnixListener
	front   *agentsocket.Front // before it, or nil
	tunnel  *tunnel            // to the clients, or nil
	fillers []net.Conn         // what the agent's backlog is full of

	client, neighbour *side
	agent             *side // nil before it was connected to
	greeted           bool  // the client
	commanded         bool  // it has said NOP, which was not answered yet
	speech            speech
	pour              *pour
	asked             chan struct{} // the local side is asked for its keys
	grips             chan []string // and says them

	mu      sync.Mutex
	reports map[uuid.UUID]remoteside.Report
	other   uuid.UUID     // the neighbour's session
	served  chan struct{} // closed when the server has let go of the client
}

// newTestbed returns a testbed whose neighbour has been served, and whose client
// has just connected. Its pieces are closed by end.
func newTestbed(t testing.TB, dir string, state situation, f fault) (*testbed, error) {
	s := &testbed{
		dir: dir, socket: filepath.Join(dir, "S.agent"), asked: make(chan struct{}, 1), grips: make(chan []string),
		reports: map[uuid.UUID]remoteside.Report{}, served: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if err := s.listen(s.socket, state.backlog); err != nil {
		return nil, err
	}
	path := s.socket
	if f.front && state.backlog == 0 { // a front has a backlog of its own
		s.front = agentsocket.StartNative(t, s.socket, [16]byte([]byte("0123456789abcdef")))
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
		Log: slog.New(slog.DiscardHandler), MaxSessions: state.sessions, Observers: []remoteside.Observer{observer{s: s}},
		Connect: remoteside.Lazy(func(ctx context.Context) (remoteside.Agent, error) {
			session, err := agent.Connect(ctx)
			if err != nil {
				return nil, err
			}
			return compat.New(ctx, session, s.keygrips), nil
		}, false),
	})
	if err := s.startNeighbour(); err != nil {
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

// listen makes an agent's socket, with a backlog of so many; 0 is the default.
func (s *testbed) listen(path string, backlog int) error {
	if backlog == 0 {
		backlog = 64
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), path)
	defer func() { _ = file.Close() }()
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
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

// restartUnix is the restart of an agent on a Unix socket. There is a socket at every
// moment, so that a session that is just connecting finds one.
func (s *testbed) restartUnix() error {
	for _, c := range s.fillers {
		_ = c.Close()
	}
	s.fillers = nil
	old, aside := s.agents, s.socket+"2"
	if err := s.listen(aside, 0); err != nil {
		return err
	}
	return errors.Join(os.Rename(aside, s.socket), old.Close())
}

// keygrips is the local side's answer to package compat. It takes as long as the test
// wants.
func (s *testbed) keygrips(ctx context.Context) ([]string, error) {
	s.asked <- struct{}{}
	select {
	case grips := <-s.grips:
		return grips, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// observer tells a testbed of the sessions that have ended.
type observer struct {
	remoteside.NopObserver
	s *testbed
}

func (o observer) Ended(r remoteside.Report) { o.s.ended(r) }

func (s *testbed) ended(r remoteside.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports[r.ID] = r
}

// report returns what is known of the client's session, if it has ended.
func (s *testbed) report() (remoteside.Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.reports {
		if id != s.other {
			return r, true
		}
	}
	return remoteside.Report{}, false
}

// connect connects one more client. ended is called when it is no longer served.
func (s *testbed) connect(ended func()) (*side, error) {
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

// pair makes a client's connection: through SSH, or a TCP socket, which can be reset. Its
// buffers are small.
func (s *testbed) pair() (ours, theirs conn, err error) {
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
func (s *testbed) accept() (*side, error) {
	_ = s.agents.SetDeadline(time.Now().Add(patience))
	c, err := s.agents.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return newSide(c), nil
}

// startNeighbour brings the neighbour to its first answer.
func (s *testbed) startNeighbour() error {
	neighbour, err := s.connect(func() {})
	if err != nil {
		return err
	}
	s.neighbour = neighbour
	if err := neighbour.receive(greeting); err != nil {
		return err
	}
	s.other = s.srv.Sessions()[0].ID
	if err := neighbour.send("NOP\n"); err != nil {
		return err
	}
	agent, err := s.accept()
	if err != nil {
		return err
	}
	s.work.Go(func() { obey(agent) })
	return neighbour.receive("OK\n")
}

// obey is an agent that greets, and answers OK until the client leaves.
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
func (s *testbed) askNeighbour() error {
	if err := s.neighbour.send("NOP\n"); err != nil {
		return err
	}
	return s.neighbour.receive("OK\n")
}

// at returns the state of the client's session, "" if it has none.
func (s *testbed) at() string {
	for _, session := range s.srv.Sessions() {
		if session.ID != s.other {
			return session.State
		}
	}
	return ""
}

// rests waits until the client's session is in a state.
func (s *testbed) rests(state string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if s.at() == state {
			return nil
		}
	}
	return fmt.Errorf("it is in %q and not in %q", s.at(), state)
}

// say has the agent send text, in its speech.
func (s *testbed) say(text string) error {
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

// hears requires that the client gets text, which the agent has sent.
func (s *testbed) hears(text string) error {
	total, err := s.client.receiveUntil(text)
	if err == nil && s.speech == behindAFlood && total < flood {
		err = fmt.Errorf("heard %d bytes only", total)
	}
	return err
}

// end closes everything and waits for it.
func (s *testbed) end() {
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
