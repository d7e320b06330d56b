package linktest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
)

func testForward(t *testing.T, l link.Link) {
	path := hostPath(t)
	for range 2 {
		forward, err := l.Forward(bounded(t), path, echo)
		require.NoError(t, err)
		var calling sync.WaitGroup
		for range 10 {
			calling.Go(func() { requireEcho(t, path) })
		}
		calling.Wait()
		require.NoError(t, forward.Close(bounded(t)))
		require.NoError(t, forward.Close(bounded(t)))
		requireNobody(t, path)
		require.NoError(t, os.Remove(path), "sshd leaves it")
	}
}

// requireNobody requires that nobody serves the socket; a connection may still be accepted
// while the host learns of the end.
func requireNobody(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		return
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(within)))
	_, _ = io.WriteString(conn, "hello")
	n, err := conn.Read(make([]byte, 1))
	require.Zero(t, n)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

type contextKey struct{}

func testForwardClosed(t *testing.T, l link.Link) {
	path := hostPath(t)
	arrived, left := make(chan context.Context, 1), make(chan struct{})
	asking, asked := context.WithCancel(context.WithValue(bounded(t), contextKey{}, "carried"))
	forward, err := l.Forward(asking, path, func(ctx context.Context, conn link.Conn) {
		arrived <- ctx
		_, _ = io.Copy(io.Discard, conn)
		close(left)
	})
	require.NoError(t, err)
	asked()
	client, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer client.Close()
	serving := <-arrived
	require.Equal(t, "carried", serving.Value(contextKey{}))
	require.NoError(t, serving.Err(), "the request's context is over, and was for the request")
	require.NoError(t, forward.Close(bounded(t)))
	require.Error(t, serving.Err())
	select {
	case <-left:
	default:
		t.Fatal("Close has not waited for serve")
	}
	require.NoError(t, client.SetReadDeadline(time.Now().Add(within)))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func testForwardRefused(t *testing.T, l link.Link) {
	path := hostPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	forward, err := l.Forward(bounded(t), path, echo)
	var refused *link.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, path, refused.Path)
	require.NotEmpty(t, refused.Hint())
	require.True(t, forward == nil, "not an interface that holds a nil pointer")

	for _, none := range []string{"", "S", "~/S", path + "\x00"} {
		forward, err = l.Forward(bounded(t), none, echo)
		var wrong *link.PathError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, none, wrong.Path)
		require.True(t, forward == nil)
	}
	require.NoError(t, os.Remove(path))
	forward, err = l.Forward(bounded(t), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	require.NoError(t, forward.Close(bounded(t)))
}

func testDial(t *testing.T, l link.Link) {
	path := hostPath(t)
	listener, err := net.Listen("unix", path)
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			echo(t.Context(), conn)
			_ = conn.Close()
		}
	})
	defer serving.Wait()
	defer listener.Close()
	for range 3 {
		conn, err := l.DialUnix(bounded(t), path)
		require.NoError(t, err)
		requireEchoed(t, conn)
		require.NoError(t, conn.Close())
	}
}

func testDialNobody(t *testing.T, l link.Link) {
	path := hostPath(t)
	for range 2 {
		conn, err := l.DialUnix(bounded(t), path)
		if err == nil { // then the first Read says so
			_, err = conn.Read(make([]byte, 1))
			require.NoError(t, conn.Close())
		} else {
			require.True(t, conn == nil, "not an interface that holds a nil pointer")
		}
		var nobody *link.DialError
		require.ErrorAs(t, err, &nobody)
		require.Equal(t, path, nobody.Path)
		require.False(t, nobody.Prohibited)
		require.False(t, nobody.Unsupported)
		require.NotEmpty(t, nobody.Hint())
	}
}

func testDialGivenUp(t *testing.T, l link.Link) {
	ctx, cancel := context.WithCancelCause(bounded(t))
	enough := errors.New("enough")
	cancel(enough)
	conn, err := l.DialUnix(ctx, hostPath(t))
	require.Error(t, err)
	require.True(t, conn == nil)
	require.NoError(t, l.Run(bounded(t), "true", nil, nil, nil), "the link lives")
}

// A bridge proves this way that the path on the host leads to it.
func testDialOwnForward(t *testing.T, l link.Link) {
	path := hostPath(t)
	forward, err := l.Forward(bounded(t), path, echo)
	require.NoError(t, err)
	conn, err := l.DialUnix(bounded(t), path)
	require.NoError(t, err)
	requireEchoed(t, conn)
	require.NoError(t, conn.Close())
	require.NoError(t, forward.Close(bounded(t)))
}
