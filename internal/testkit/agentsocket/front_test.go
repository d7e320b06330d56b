package agentsocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const greeting = "OK Pleased to meet you"

// realAgent returns the extra socket of a running agent.
func realAgent(t *testing.T) string {
	t.Helper()
	h := gpghome.ForTest(t)
	require.NoError(t, h.StartAgent(t.Context()))
	path, err := h.ExtraSocket(t.Context())
	require.NoError(t, err)
	return path
}

// open dials the file and authenticates, within a deadline.
func open(t *testing.T, path string, patience time.Duration) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	at, err := (&agentside.Locator{AgentSocket: path}).Locate(ctx)
	require.NoError(t, err)
	conn, err := at.Dial(ctx)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn, at.Authenticate(conn)
}

// requireAgent opens a connection and has a conversation.
func requireAgent(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := open(t, path, 10*time.Second)
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, greeting)
	_, err = io.WriteString(conn, "GETINFO restricted\n")
	require.NoError(t, err)
	line, err = in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "OK\n", line)
	return conn
}

type starter func(testing.TB, string, [16]byte) *Front

var starters = map[string]starter{"native": StartNative, "cygwin": StartCygwin}

func TestAllFourKindsLeadToTheAgent(t *testing.T) {
	backend := realAgent(t)
	nonce := [16]byte([]byte("0123456789abcdef"))
	redirect := filepath.Join(env.ShortDir(t), "S.gpg-agent.extra")
	require.NoError(t, os.WriteFile(redirect, []byte("%Assuan%\nsocket="+backend+"\n"), 0o644))

	for name, path := range map[string]string{
		"unix":     backend,
		"redirect": redirect,
		"native":   StartNative(t, backend, nonce).SocketFile,
		"cygwin":   StartCygwin(t, backend, nonce).SocketFile,
	} {
		t.Run(name, func(t *testing.T) {
			requireAgent(t, path)
			agent := &agentside.Agent{Locator: &agentside.Locator{AgentSocket: path}}
			session, err := agent.Connect(t.Context())
			require.NoError(t, err)
			require.Contains(t, string(session.Greeting()), greeting)
			require.NoError(t, session.Disconnect())
		})
	}
}

func TestNoncesOfAnyBytes(t *testing.T) {
	backend := realAgent(t)
	for kind, start := range starters {
		for name, nonce := range map[string]string{
			"line feeds":     strings.Repeat("\n", 16),
			"carriage":       "\r\r\n\r0123456789a\r",
			"ends in CR":     "0123456789abcde\r",
			"ends in CR LF":  "0123456789abcd\r\n",
			"begins with LF": "\n123456789abcdef",
			"NULs":           strings.Repeat("\x00", 16),
			"high bits":      strings.Repeat("\xff\x80", 8),
			"words differ":   "\x00\x01\x02\x03\x10\x11\x12\x13\x20\x21\x22\x23\x30\x31\x32\x33",
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				requireAgent(t, start(t, backend, [16]byte([]byte(nonce))).SocketFile)
			})
		}
		t.Run(kind+"/random", func(t *testing.T) {
			for range 50 {
				var nonce [16]byte
				_, _ = rand.Read(nonce[:])
				front := start(t, backend, nonce)
				requireAgent(t, front.SocketFile)
				require.NoError(t, front.Close())
			}
		})
	}
}

func TestRestartBetweenTwoConnections(t *testing.T) {
	backend := realAgent(t)
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			front := start(t, backend, [16]byte([]byte("0123456789abcdef")))
			first := requireAgent(t, front.SocketFile)
			before, err := os.ReadFile(front.SocketFile)
			require.NoError(t, err)

			require.NoError(t, front.Restart())
			after, err := os.ReadFile(front.SocketFile)
			require.NoError(t, err)
			require.NotEqual(t, before, after)
			_, err = first.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			requireAgent(t, front.SocketFile)
		})
	}
}

func TestWrongNonceIsClosedWithoutAWord(t *testing.T) {
	backend := realAgent(t)
	front := StartNative(t, backend, [16]byte([]byte("0123456789abcdef")))
	require.NoError(t, front.SetFault(WrongNonce))
	conn, err := open(t, front.SocketFile, 10*time.Second)
	require.NoError(t, err, "a native socket does not answer the nonce")
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Empty(t, said)

	_, err = (&agentside.Agent{Locator: &agentside.Locator{AgentSocket: front.SocketFile}}).Connect(t.Context())
	var silent *agentside.NoGreetingError
	require.ErrorAs(t, err, &silent)

	front = StartCygwin(t, backend, [16]byte([]byte("0123456789abcdef")))
	require.NoError(t, front.SetFault(WrongNonce))
	_, err = open(t, front.SocketFile, 10*time.Second)
	require.ErrorIs(t, err, io.EOF)

	require.NoError(t, front.SetFault(WrongEcho))
	_, err = open(t, front.SocketFile, 10*time.Second)
	require.ErrorContains(t, err, "does not know the secret")

	require.NoError(t, front.SetFault(NoFault))
	requireAgent(t, front.SocketFile)
}

func TestSilenceEndsAtTheCallersDeadline(t *testing.T) {
	backend := realAgent(t)
	const patience = 100 * time.Millisecond
	for kind, start := range starters {
		front := start(t, backend, [16]byte([]byte("0123456789abcdef")))
		for _, fault := range []Fault{NoGreeting, NeverReads} {
			require.NoError(t, front.SetFault(fault))
			conn, err := open(t, front.SocketFile, patience)
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "%s %d", kind, fault)
		}
		require.NoError(t, front.SetFault(HangsUpLate))
		conn, err := open(t, front.SocketFile, 10*time.Second)
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestClosedFrontIsNoAgent(t *testing.T) {
	front := StartNative(t, "/nowhere", [16]byte{})
	require.NoError(t, front.Close())
	require.NoError(t, front.Close(), "again")
	_, err := open(t, front.SocketFile, time.Second)
	var gone *agentside.NoAgentError
	require.ErrorAs(t, err, &gone)
	require.NotEmpty(t, gone.Hint())
}

// A client that sends the nonce and its first line at once, or byte by byte,
// is served the same: the server counts bytes and not reads.
func TestServerCountsBytes(t *testing.T) {
	backend := realAgent(t)
	nonce := [16]byte([]byte("\n123456789abcde\r"))
	front := StartNative(t, backend, nonce)
	content, err := os.ReadFile(front.SocketFile)
	require.NoError(t, err)
	port, _, _ := strings.Cut(string(content), "\n")

	conn, err := net.Dial("tcp4", "127.0.0.1:"+port)
	require.NoError(t, err)
	defer conn.Close()
	for _, b := range nonce {
		_, err = conn.Write([]byte{b})
		require.NoError(t, err)
	}
	_, err = io.WriteString(conn, "BYE\n")
	require.NoError(t, err)
	said, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(said), greeting)
	require.Contains(t, string(said), "OK closing connection\n")
}
