package agentside

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errTest = errors.New("test")

// recordConn is an agent's socket from which nothing comes, and which records
// what happens to it.
type recordConn struct {
	net.Conn
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

func (c *recordConn) SetDeadline(time.Time) error { return nil }

// fakeEndpoint leads to one connection, whose credentials are a line.
type fakeEndpoint struct {
	conn             net.Conn
	dialErr, authErr error
}

func (e *fakeEndpoint) Dial(context.Context) (net.Conn, error) { return e.conn, e.dialErr }

func (e *fakeEndpoint) Authenticate(conn net.Conn) error {
	if e.authErr != nil {
		return e.authErr
	}
	_, err := io.WriteString(conn, "nonce\n")
	return err
}

func noCheck(*Session) error { return nil }

// A turn is what an agent of the tests' waits for, a line, and what it then
// says. It waits for nothing if hear is empty.
type turn struct{ hear, say string }

var (
	turnGreet      = turn{"nonce\n", "OK Pleased to meet you\n"}
	turnRestricted = turn{"GETINFO restricted\n", "OK\n"}
	turnFree       = turn{"GETINFO restricted\n", "ERR 67109120 False <GPG Agent>\n"}
)

// hangUp, as the last turn, is an agent that closes by itself. Any other waits
// until it has been left, and requires that it heard nothing more.
var hangUp = turn{}

// agentOf returns the connection to an agent that takes these turns.
func agentOf(t *testing.T, turns ...turn) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	played := make(chan error, 1)
	go func() { played <- play(theirs, turns) }()
	t.Cleanup(func() {
		_ = ours.Close()
		require.NoError(t, <-played)
	})
	return ours
}

func play(conn net.Conn, turns []turn) error {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for _, turn := range turns {
		if turn == hangUp {
			return nil
		}
		if turn.hear != "" {
			if line, err := in.ReadString('\n'); err != nil || line != turn.hear {
				return fmt.Errorf("heard %q, %w, waited for %q", line, err, turn.hear)
			}
		}
		if turn.say == "" { // which a net.Pipe would deliver, too
			continue
		}
		if _, err := io.WriteString(conn, turn.say); err != nil {
			return fmt.Errorf("saying %q: %w", turn.say, err)
		}
	}
	rest, err := io.ReadAll(in)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("heard %q, %w, after the last turn", rest, err)
	}
	return nil
}

// readySession returns a session with an agent that takes these turns after its
// greeting.
func readySession(t *testing.T, turns ...turn) *Session {
	t.Helper()
	conn := agentOf(t, append([]turn{turnGreet}, turns...)...)
	s, err := connect(t.Context(), &fakeEndpoint{conn: conn}, noCheck)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
