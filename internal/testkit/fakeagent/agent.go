package fakeagent

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Greeting is the agent's first line.
const Greeting = "OK Pleased to meet you\n"

// An Agent is an agent that says what the test tells it to, and records what it gets. Its Say
// is unbuffered: once a send returns, the text has been read.
type Agent struct {
	WriteErr, CloseErr error
	Say                chan string
	Gone               chan struct{} // closed when the agent leaves by itself
	Done               chan struct{} // closed by Close
	Heard              chan string   // what was written, line by line

	mu     sync.Mutex
	wrote  []byte
	Closes int
}

// New returns an Agent that has said nothing yet.
func New() *Agent {
	return &Agent{
		Say: make(chan string), Gone: make(chan struct{}), Done: make(chan struct{}), Heard: make(chan string, 4096),
	}
}

// Greeting returns the constant Greeting.
func (a *Agent) Greeting() []byte { return []byte(Greeting) }

// WriteLine records the line.
func (a *Agent) WriteLine(line []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.WriteErr != nil {
		return a.WriteErr
	}
	if a.Closes > 0 {
		return net.ErrClosed
	}
	a.wrote = append(a.wrote, line...)
	a.Heard <- string(line)
	return nil
}

// ReadLine waits for the next text of Say, or for the agent's end.
func (a *Agent) ReadLine() ([]byte, bool, error) {
	select {
	case line := <-a.Say:
		return []byte(line), false, nil
	case <-a.Gone:
		return nil, false, io.EOF
	case <-a.Done:
		return nil, false, net.ErrClosed
	}
}

// Close counts how often it is called.
func (a *Agent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Closes++; a.Closes == 1 {
		close(a.Done)
	}
	return a.CloseErr
}

// Written returns all that was written to it.
func (a *Agent) Written() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return string(a.wrote)
}

// Send writes to a conversation.
func Send(t *testing.T, conn io.Writer, s string) {
	t.Helper()
	_, err := io.WriteString(conn, s)
	require.NoError(t, err)
}

// Receive requires that want comes next.
func Receive(t *testing.T, conn io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// ReceiveEOF requires that nothing more comes.
func ReceiveEOF(t *testing.T, conn io.Reader) {
	t.Helper()
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}
