//go:build unix

package mux

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/sshd"
)

func TestForward(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	path := remotePath(t)
	for range 3 { // a master answers a request that it knows without asking the host
		forward, err := shared.Forward(t.Context(), path, echo)
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(s.dir.Path(), shared.options.Name+forwardSocket))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		var calling sync.WaitGroup
		for range 20 {
			calling.Go(func() { requireEcho(t, path) })
		}
		calling.Wait()
		_, err = shared.Forward(t.Context(), path+"2", echo)
		require.ErrorIs(t, err, errForwarded)
		require.NoError(t, forward.Close(t.Context()))
		require.NoError(t, forward.Close(t.Context()))
		_, err = call(path, "hello")
		require.Error(t, err)
		require.NoError(t, os.Remove(path), "sshd leaves it")
	}
	s.requireAlive(t)
}

func TestForwardRefused(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	path := remotePath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for range 2 {
		_, err := shared.Forward(t.Context(), path, echo)
		var refused *link.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, path, refused.Path)
		s.requireTidy(t)
	}
	_, err := shared.Forward(t.Context(), "S", echo)
	var relative *link.PathError
	require.ErrorAs(t, err, &relative)
	require.NoError(t, os.Remove(path))
	_, err = shared.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
}

// What a killed process has left does not hinder the next one: neither the forward that the
// master believes to have, nor the socket's file, nor the socket on which the master listens.
func TestForwardAfterAKill(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	path := remotePath(t)
	killed := s.open(t)
	forward, err := killed.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	conn, err := killed.DialUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	left := forward.(*Forward)
	left.stop(net.ErrClosed) // as the end of its process would
	killed.localMu.Lock()
	killed.local = localForward{}
	killed.localMu.Unlock()
	require.NoError(t, os.WriteFile(left.local, nil, 0o600))

	_, err = call(path, "hello")
	if err == nil {
		t.Log("sshd listens still")
	}
	require.NoError(t, os.Remove(path)) // which prepare.Prepare does
	shared := s.open(t)
	_, err = shared.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	back, err := shared.DialUnix(t.Context(), path)
	require.NoError(t, err)
	defer func() { _ = back.Close() }()
	_, err = io.WriteString(back, "hello")
	require.NoError(t, err)
	text := make([]byte, 5)
	_, err = io.ReadFull(back, text)
	require.NoError(t, err)
	require.Equal(t, "HELLO", string(text))
}

// The serve calls of a Forward are over when Close returns, and their
// connections end with it.
func TestForwardCloseEndsItsConnections(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	path := remotePath(t)
	arrived, left := make(chan context.Context, 1), make(chan struct{})
	forward, err := s.open(t).Forward(t.Context(), path, func(ctx context.Context, conn link.Conn) {
		arrived <- ctx
		_, _ = io.Copy(io.Discard, conn)
		close(left)
	})
	require.NoError(t, err)
	client, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	ctx := <-arrived
	require.NoError(t, ctx.Err())
	require.NoError(t, forward.Close(t.Context()))
	require.Error(t, ctx.Err())
	select {
	case <-left:
	default:
		t.Fatal("Close has not waited")
	}
	_ = client.SetReadDeadline(time.Now().Add(within))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestDialUnix(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	before := descriptors(t, s.cmd.Process.Pid)
	listening := remotePath(t)
	listener, err := net.Listen("unix", listening)
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			echo(t.Context(), conn)
			_ = conn.Close()
		}
	}()
	for i := range 6 {
		if i == 3 { // as something that cleans up /tmp
			require.NoError(t, os.Remove(filepath.Join(s.dir.Path(), shared.options.Name+dialSocket)))
		}
		conn, err := shared.DialUnix(t.Context(), listening)
		require.NoError(t, err)
		_, err = io.WriteString(conn, "hello")
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "HELLO", string(answer))
		require.NoError(t, conn.Close())
	}
	nobody := remotePath(t)
	for range 3 {
		conn, err := shared.DialUnix(t.Context(), nobody)
		require.NoError(t, err)
		_, _ = io.WriteString(conn, "hello")
		_, err = conn.Read(make([]byte, 1))
		var refused *link.DialError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, nobody, refused.Path)
		require.False(t, refused.Prohibited)
		require.NoError(t, conn.Close())
	}
	s.requireAlive(t)
	eventually(t, func() bool { return descriptors(t, s.cmd.Process.Pid) <= before+1 }) // the local forward
	require.NoError(t, shared.Close())
	s.requireTidy(t)
	eventually(t, func() bool { return descriptors(t, s.cmd.Process.Pid) <= before })
}

// A request that nobody waits for any more is cancelled, also if the host answers late; the
// master stays.
func TestForwardGivenUp(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := shareBy(t, holding(t, hold))
	shared := s.open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("enough")
	time.AfterFunc(100*time.Millisecond, func() { cancel(stopped) })
	path := remotePath(t)
	_, err := shared.Forward(ctx, path, echo)
	require.ErrorIs(t, err, stopped)
	close(hold)
	shared.CheckAlive(t.Context())
	require.False(t, shared.isOver())
	eventually(t, func() bool {
		_, err := call(path, "x")
		return err != nil
	})
	_ = os.Remove(path)
	forward, err := shared.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	require.NoError(t, forward.Close(t.Context()))
	shared.CheckAlive(t.Context())
	require.False(t, shared.isOver())
}
