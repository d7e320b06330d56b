package remoteside

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakeagent"
)

// okAgent answers OK to every command, and leaves after BYE.
type okAgent struct {
	*fakeagent.Agent
	bye   bool // owned by the reader
	count func(delta int32)
	once  sync.Once // Close
}

func (a *okAgent) ReadLine() ([]byte, bool, error) {
	if a.bye {
		return nil, false, io.EOF
	}
	select {
	case line := <-a.Heard:
		a.bye = line == "BYE\n"
		return []byte("OK\n"), false, nil
	case <-a.Done:
		return nil, false, net.ErrClosed
	}
}

func (a *okAgent) Close() error {
	err := a.Agent.Close()
	a.once.Do(func() { a.count(-1) })
	return err
}

// okAgents connects to okAgents, and remembers how many were there at once.
type okAgents struct{ now, most atomic.Int32 }

func (o *okAgents) connect(context.Context) (Agent, error) {
	o.count(1)
	return &okAgent{Agent: fakeagent.New(), count: o.count}, nil
}

func (o *okAgents) count(delta int32) {
	now := o.now.Add(delta)
	for most := o.most.Load(); now > most; most = o.most.Load() {
		o.most.CompareAndSwap(most, now)
	}
}

// fleet is a server and the clients that it serves.
type fleet struct {
	srv    *Server
	served sync.WaitGroup
	mu     sync.Mutex
	causes []error
}

func newFleet(t *testing.T, connect ConnectAgent, maxSessions int) *fleet {
	f := &fleet{}
	f.srv = NewServer(Config{Connect: connect, Log: slog.New(slog.DiscardHandler), MaxSessions: maxSessions, Observers: []Observer{onEnd{ended: f.ended}}})
	t.Cleanup(f.served.Wait)
	return f
}

func (f *fleet) ended(r Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.causes = append(f.causes, r.Cause)
}

func (f *fleet) client(t *testing.T, ctx context.Context) net.Conn {
	client, server := net.Pipe()
	f.served.Go(func() { f.srv.ServeConn(ctx, server) })
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestManyClients: those beyond the limit wait their turn, and none is turned
// away.
func TestManyClients(t *testing.T) {
	const clients, atOnce = 300, 4
	agents := &okAgents{}
	f := newFleet(t, agents.connect, atOnce)
	failed := make(chan error, clients)
	for range clients {
		conn := f.client(t, t.Context())
		go func() { failed <- converse(conn, 3) }()
	}
	for range clients {
		require.NoError(t, <-failed)
	}
	f.served.Wait()
	require.LessOrEqual(t, agents.most.Load(), int32(atOnce))
	require.Zero(t, agents.now.Load())
	require.Len(t, f.causes, clients)
	for _, cause := range f.causes {
		require.NoError(t, cause)
	}
	require.Empty(t, f.srv.Sessions())
}

// converse says commands and BYE, and requires the greeting, their answers and
// the end.
func converse(conn net.Conn, commands int) error {
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); line != fakeagent.Greeting {
		return errors.Join(errors.New("greeted with "+line), err)
	}
	for i := range commands + 1 {
		command := "NOP\n"
		if i == commands {
			command = "BYE\n"
		}
		if _, err := io.WriteString(conn, command); err != nil {
			return err
		}
		if line, err := in.ReadString('\n'); line != "OK\n" {
			return errors.Join(errors.New("answered with "+line), err)
		}
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) > 0 {
		return errors.Join(errors.New("more: "+string(rest)), err)
	}
	return nil
}

// TestSessionsAreIndependent: one that fails is invisible to another.
func TestSessionsAreIndependent(t *testing.T) {
	f := newFleet(t, (&okAgents{}).connect, 0)
	good, bad := f.client(t, t.Context()), f.client(t, t.Context())
	fakeagent.Receive(t, good, fakeagent.Greeting)
	fakeagent.Receive(t, bad, fakeagent.Greeting)
	_, _ = bad.Write(make([]byte, 2000))
	fakeagent.ReceiveEOF(t, bad)
	fakeagent.Send(t, good, "NOP\n")
	fakeagent.Receive(t, good, "OK\n")

	require.Eventually(t, func() bool { // the bad one goes after its client has seen the end
		statuses := f.srv.Sessions()
		return len(statuses) == 1 && statuses[0].State == "Ready" && statuses[0].Commands == 1
	}, 30*time.Second, time.Millisecond)
}

// TestServerEnds: the end of the context ends the sessions, those that wait
// for their turn too.
func TestServerEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	agents := &okAgents{}
	f := newFleet(t, agents.connect, 2)
	var conns []net.Conn
	for range 5 {
		conns = append(conns, f.client(t, ctx))
	}
	require.Eventually(t, func() bool { return agents.now.Load() == 2 }, 30*time.Second, time.Millisecond)
	cancel(errTest)
	for _, conn := range conns {
		_, _ = io.Copy(io.Discard, conn)
	}
	f.served.Wait()
	require.Zero(t, agents.now.Load())
	require.Empty(t, f.srv.Sessions())
	require.Len(t, f.causes, 2)
}

// TestExpect: a comment is recognised wherever the machine takes lines, once,
// and by this server only; other comments are nothing.
func TestExpect(t *testing.T) {
	f := newFleet(t, (&okAgents{}).connect, 0)
	other := newFleet(t, (&okAgents{}).connect, 0)
	expected := f.srv.Expect()
	defer expected.Drop()
	require.Equal(t, byte('\n'), expected.Comment[len(expected.Comment)-1])

	for _, fl := range []*fleet{other, f} {
		select {
		case <-expected.Seen:
			t.Fatal("seen at another server")
		default:
		}
		conn := fl.client(t, t.Context())
		fakeagent.Receive(t, conn, fakeagent.Greeting)
		fakeagent.Send(t, conn, "# gpg-bridge something else\n\r\n"+string(expected.Comment)+string(expected.Comment)+"NOP\n")
		fakeagent.Receive(t, conn, "OK\n")
	}
	<-expected.Seen

	dropped := f.srv.Expect()
	dropped.Drop()
	require.NotEqual(t, expected.Comment, dropped.Comment)
	conn := f.client(t, t.Context())
	fakeagent.Receive(t, conn, fakeagent.Greeting)
	fakeagent.Send(t, conn, string(dropped.Comment)+"NOP\n")
	fakeagent.Receive(t, conn, "OK\n")
	select {
	case <-dropped.Seen:
		t.Fatal("seen after it was dropped")
	default:
	}
	require.Empty(t, f.srv.expected)
}

// TestExpectWhenFull: while every session is busy, a client that has to wait
// tells as much as the comment that would wait with it.
func TestExpectWhenFull(t *testing.T) {
	agents := &okAgents{}
	f := newFleet(t, agents.connect, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy := f.client(t, ctx)
	_, err := bufio.NewReader(busy).ReadString('\n')
	require.NoError(t, err)
	expected := f.srv.Expect()
	defer expected.Drop()
	f.client(t, ctx)
	select {
	case <-expected.Seen:
	case <-time.After(10 * time.Second):
		t.Fatal("the waiting client was not taken for an answer")
	}
}
