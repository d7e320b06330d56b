package linktest

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
)

// within bounds the wait for something that must happen.
const within = 30 * time.Second

// An Opener makes a link to this machine, as the user who runs the test, and closes it
// when the test ends. lose ends the connection as the death of its server would.
type Opener func(t *testing.T) (l link.Link, lose func())

// Run runs all tests, each with a link of its own.
func Run(t *testing.T, open Opener) {
	for name, test := range map[string]func(t *testing.T, l link.Link){
		"run":                      testRun,
		"run that fails":           testRunFails,
		"run that is given up":     testRunGivenUp,
		"forward":                  testForward,
		"forward that is closed":   testForwardClosed,
		"forward that is refused":  testForwardRefused,
		"dial":                     testDial,
		"dial where nobody is":     testDialNobody,
		"dial that is given up":    testDialGivenUp,
		"dial to our own forward":  testDialOwnForward,
		"closed":                   testClosed,
		"asked for a sign of life": testAlive,
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := open(t)
			test(t, l)
		})
	}
	t.Run("lost", func(t *testing.T) {
		l, lose := open(t)
		testLost(t, l, lose)
	})
}

// bounded returns a context that ends a test that hangs.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// hostPath returns a path for a socket on the host, which is this machine.
func hostPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(env.ShortDir(t), "S")
}

// echo serves one message.
func echo(_ context.Context, conn link.Conn) {
	text := make([]byte, 100)
	n, _ := conn.Read(text)
	_, _ = conn.Write(text[:n])
}

// requireEcho requires an echo at the socket, which it uses as a program on the host would.
func requireEcho(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	requireEchoed(t, conn)
}

func requireEchoed(t *testing.T, conn io.ReadWriter) {
	t.Helper()
	_, err := io.WriteString(conn, "hello")
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
}

// wait returns what Wait does.
func wait(t *testing.T, l link.Link) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- l.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(within):
		require.FailNow(t, "the link has not ended")
		return nil
	}
}

func testClosed(t *testing.T, l link.Link) {
	path := hostPath(t)
	forward, err := l.Forward(bounded(t), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	require.NoError(t, wait(t, l))
	require.NoError(t, forward.Close(bounded(t)), "there is nothing left to ask")
	require.Error(t, l.Run(bounded(t), "true", nil, nil, nil))
	refused, err := l.Forward(bounded(t), hostPath(t), echo)
	require.Error(t, err)
	require.True(t, refused == nil)
	conn, err := l.DialUnix(bounded(t), path)
	require.Error(t, err)
	require.True(t, conn == nil)
}

func testAlive(t *testing.T, l link.Link) {
	l.CheckAlive(bounded(t))
	require.NoError(t, l.Run(bounded(t), "true", nil, nil, nil))
	require.GreaterOrEqual(t, l.SharedBy(), 0)
}

func testLost(t *testing.T, l link.Link, lose func()) {
	forward, err := l.Forward(bounded(t), hostPath(t), echo)
	require.NoError(t, err)
	started, start := io.Pipe()
	running := make(chan error, 1)
	go func() { running <- l.Run(bounded(t), "echo; exec sleep 100", nil, start, nil) }()
	_, err = started.Read(make([]byte, 1))
	require.NoError(t, err)
	lose()

	requireLost := func(err error) {
		t.Helper()
		var lost *link.LostError
		require.ErrorAs(t, err, &lost)
		require.NotEmpty(t, lost.Hint())
		require.True(t, lost.ConnectionLost())
	}
	requireLost(wait(t, l))
	requireLost(<-running)
	requireLost(l.Run(bounded(t), "true", nil, nil, nil))
	require.NoError(t, forward.Close(bounded(t)), "there is nobody left to ask")
	_, err = l.Forward(bounded(t), hostPath(t), echo)
	requireLost(err)
	_, err = l.DialUnix(bounded(t), hostPath(t))
	if !errors.Is(err, link.ErrUnanswered) {
		requireLost(err)
	}
	require.NoError(t, l.Close())
	_ = wait(t, l)
}
