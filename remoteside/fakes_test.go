package remoteside

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const testGreeting = "OK Pleased to meet you\n"

// recordConn is a client that says nothing and records what happens to it.
type recordConn struct {
	bytes.Buffer
	writes, closes     int
	writeErr, closeErr error
}

func (c *recordConn) Read([]byte) (int, error) { return 0, io.EOF }

func (c *recordConn) Write(p []byte) (int, error) {
	c.writes++
	if c.writeErr != nil {
		return 0, c.writeErr
	}
	return c.Buffer.Write(p)
}

func (c *recordConn) Close() error {
	c.closes++
	return c.closeErr
}

// fakeAgent is an agent that says what the test tells it to, and records. Its
// say is unbuffered: what was said has been read.
type fakeAgent struct {
	writeErr, closeErr error
	say                chan string
	gone               chan struct{} // closed when the agent leaves by itself
	done               chan struct{} // closed by Close
	heard              chan string   // what was written, line by line

	mu     sync.Mutex
	wrote  []byte
	closes int
}

func newFakeAgent() *fakeAgent {
	return &fakeAgent{
		say: make(chan string), gone: make(chan struct{}), done: make(chan struct{}), heard: make(chan string, 4096),
	}
}

func (a *fakeAgent) Greeting() []byte { return []byte(testGreeting) }

func (a *fakeAgent) WriteLine(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writeErr != nil {
		return a.writeErr
	}
	if a.closes > 0 {
		return net.ErrClosed
	}
	a.wrote = append(a.wrote, line...)
	a.heard <- string(line)
	return nil
}

func (a *fakeAgent) ReadLine() ([]byte, bool, error) {
	select {
	case line := <-a.say:
		return []byte(line), false, nil
	case <-a.gone:
		return nil, false, io.EOF
	case <-a.done:
		return nil, false, net.ErrClosed
	}
}

func (a *fakeAgent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closes++; a.closes == 1 {
		close(a.done)
	}
	return a.closeErr
}

func (a *fakeAgent) written() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.wrote)
}

// connectTo is a ConnectAgent that finds this agent.
func connectTo(a Agent) ConnectAgent {
	return func(context.Context) (Agent, error) { return a, nil }
}

// serve serves one client of a server with this configuration, and returns the
// client's end and what will be known of the session at its end.
func serve(t *testing.T, ctx context.Context, config Config) (net.Conn, <-chan Report) {
	t.Helper()
	client, server := net.Pipe()
	reports := make(chan Report, 1)
	config.Log = slog.New(slog.DiscardHandler)
	config.Ended = func(r Report) { reports <- r }
	srv := NewServer(config)
	var served sync.WaitGroup
	served.Go(func() { srv.ServeConn(ctx, server) })
	t.Cleanup(func() {
		_ = client.Close()
		served.Wait()
		require.Empty(t, srv.Sessions())
	})
	return client, reports
}

func send(t *testing.T, conn io.Writer, s string) {
	t.Helper()
	_, err := io.WriteString(conn, s)
	require.NoError(t, err)
}

func receive(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func receiveEOF(t *testing.T, conn io.Reader) {
	t.Helper()
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}
