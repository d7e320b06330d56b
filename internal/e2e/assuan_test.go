package e2e

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A client is the other end of an agent's socket, or of a forwarded one, that
// sends what it likes.
type client struct {
	net.Conn
	in *bufio.Reader
}

// dial opens a conversation and reads the greeting.
func dial(t testing.TB, path string) *client {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	require.True(t, strings.HasPrefix(c.line(t), "OK Pleased to meet you"))
	return c
}

func (c *client) send(t testing.TB, text string) {
	t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
}

func (c *client) line(t testing.TB) string {
	t.Helper()
	line, err := c.in.ReadString('\n')
	require.NoError(t, err)
	return line
}

// response reads up to the line that ends a response or begins an inquiry.
func (c *client) response(t testing.TB) string {
	t.Helper()
	var lines strings.Builder
	for {
		line := c.line(t)
		lines.WriteString(line)
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "OK", "ERR", "INQUIRE":
			return lines.String()
		}
	}
}

// ask sends and returns the response.
func (c *client) ask(t testing.TB, command string) string {
	t.Helper()
	c.send(t, command)
	return c.response(t)
}

// rest returns what comes until the other side closes, in whatever way.
func (c *client) rest(t testing.TB) string {
	t.Helper()
	var rest strings.Builder
	for {
		line, err := c.in.ReadString('\n')
		rest.WriteString(line)
		if err == nil {
			continue
		}
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it said %q", rest.String())
		return rest.String()
	}
}

// inquire brings the connection to the inquiry of a decryption.
func (c *client) inquire(t testing.TB, keygrip string) {
	t.Helper()
	require.Equal(t, "OK\n", c.ask(t, "SETKEY "+keygrip+"\n"))
	require.True(t, strings.HasSuffix(c.ask(t, "PKDECRYPT\n"), "INQUIRE CIPHERTEXT\n"))
}

// A fakeAgent is an agent of the laptop's that answers as it is told, and
// keeps what it got. It serves until the test ends.
type fakeAgent struct {
	path string

	mu  sync.Mutex
	got []string
}

// startFake starts an agent whose answer to a line, without its LF, is what
// answer returns. answer is called from a goroutine for each connection.
func startFake(t testing.TB, answer func(line string) string) *fakeAgent {
	t.Helper()
	f := &fakeAgent{path: filepath.Join(env.ShortDir(t), "S.fake")}
	listener, err := net.Listen("unix", f.path)
	require.NoError(t, err)
	var serving sync.WaitGroup
	var conns sync.Map
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Store(conn, nil)
			serving.Go(func() { f.serve(conn, answer) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
		serving.Wait()
	})
	return f
}

func (f *fakeAgent) serve(conn net.Conn, answer func(string) string) {
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte("OK Pleased to meet you, fake\n"))
	in := bufio.NewScanner(conn)
	for in.Scan() {
		f.mu.Lock()
		f.got = append(f.got, in.Text())
		f.mu.Unlock()
		if _, err := conn.Write([]byte(answer(in.Text()))); err != nil || strings.HasPrefix(in.Text(), "BYE") {
			return
		}
	}
}

// lines are those that came so far, from all connections.
func (f *fakeAgent) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.got...)
}
