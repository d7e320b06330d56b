//go:build unix

package mux

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

func TestNoMaster(t *testing.T) {
	t.Parallel()
	dir := env.ShortDir(t)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dead := filepath.Join(dir, "dead")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	for _, path := range []string{"", "control", filepath.Join(dir, "none"), filepath.Join(file, "below"), file, dead} {
		_, err := Open(t.Context(), Options{ControlPath: path})
		if path != filepath.Join(file, "below") {
			require.ErrorIs(t, err, ErrNoMaster, "%q", path)
		}
		require.Error(t, err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, sshd.Config{})
	s := share(t, server)
	shared := s.open(t)
	require.Equal(t, s.cmd.Process.Pid, shared.SharedBy())

	var out, errOut bytes.Buffer
	require.NoError(t, shared.Run(t.Context(), "cat; echo bad >&2", strings.NewReader("good\n"), &out, &errOut))
	require.Equal(t, "good\n", out.String())
	require.Equal(t, "bad\n", errOut.String())

	out.Reset()
	require.NoError(t, shared.Run(t.Context(), "head -c 3000000 /dev/zero", nil, &out, nil))
	require.Equal(t, 3000000, out.Len(), "all of the output is there when it returns")

	var exit *link.ExitError
	require.ErrorAs(t, shared.Run(t.Context(), "exit 7", nil, nil, nil), &exit)
	require.Equal(t, 7, exit.Status)
	require.ErrorIs(t, shared.Run(t.Context(), "kill -9 $$", nil, nil, nil), link.ErrNoExitStatus)
	require.Error(t, shared.Run(t.Context(), "", nil, nil, nil))

	// A Read of stdin that hangs delays nobody.
	r, w := io.Pipe()
	require.NoError(t, shared.Run(t.Context(), "true", r, nil, nil))
	_ = w.Close()

	failed := errors.New("full")
	err := shared.Run(t.Context(), "yes", nil, failingWriter{failed}, nil)
	require.ErrorIs(t, err, failed)
	require.Equal(t, 1, logins(server))
	s.requireTidy(t)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A command that does not end is ended with ctx, and leaves the master as it was.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	before := descriptors(t, s.cmd.Process.Pid)
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		err := shared.Run(ctx, "echo here; cat", readerOf(t), writerFunc(func(p []byte) (int, error) {
			cancel(stop)
			return len(p), nil
		}), nil)
		require.ErrorIs(t, err, stop)
	}
	s.requireAlive(t)
	eventually(t, func() bool { return descriptors(t, s.cmd.Process.Pid) <= before })
}

// readerOf returns an input that does not end before the test.
func readerOf(t testing.TB) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSessionRefused(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{Options: []string{"MaxSessions 0"}}))
	var refused *RefusedError
	require.ErrorAs(t, s.open(t).Run(t.Context(), "true", nil, nil, nil), &refused)
	require.False(t, refused.Denied)
	require.NotEmpty(t, refused.Hint())
}

// However the master ends, that is noticed without asking it.
func TestMasterEnds(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, sshd.Config{})
	for name, end := range map[string]func(*sharing){
		"asked to":   func(s *sharing) { require.NoError(t, server.SSH("-S", s.path, "-O", "exit", "host").Run()) },
		"terminated": func(s *sharing) { s.kill(syscall.SIGTERM) },
		"killed":     func(s *sharing) { s.kill(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := share(t, server)
			shared := s.open(t)
			forward, err := shared.Forward(t.Context(), remotePath(t), echo)
			require.NoError(t, err)
			requireEcho(t, forward.(*Forward).remote)
			running := make(chan error, 1)
			go func() { running <- shared.Run(t.Context(), "sleep 100", nil, nil, nil) }()
			end(s)
			var lost *link.LostError
			require.ErrorAs(t, shared.Wait(), &lost)
			require.ErrorAs(t, <-running, &lost)
			require.ErrorAs(t, shared.Run(t.Context(), "true", nil, nil, nil), &lost)
			require.NoError(t, forward.Close(t.Context()))
			require.NoError(t, shared.Close())
			s.requireTidy(t)
			_, err = Open(t.Context(), s.options())
			require.ErrorIs(t, err, ErrNoMaster)
		})
	}
}

// The user's ssh ends with their command, whatever we have open through it.
func TestUserIsNotHeldUp(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}), "cat")
	shared := s.open(t)
	path := remotePath(t)
	_, err := shared.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	conn, err := shared.DialUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, shared.Run(t.Context(), "true", nil, nil, nil))
	require.NoError(t, s.stdin.Close())
	select {
	case <-s.ended:
	case <-time.After(within):
		t.Fatal("the user's ssh does not end with their command")
	}
	var lost *link.LostError
	require.ErrorAs(t, shared.Wait(), &lost)
}

// A stopped master is given up when there is a reason to ask it.
func TestStoppedMaster(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	shared.CheckAlive(t.Context())
	require.False(t, shared.isOver())
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, s.options())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	shared.CheckAlive(ctx)
	var lost *link.LostError
	require.ErrorAs(t, shared.Wait(), &lost)
}

// A new master at the same path is not asked about what the old one had.
func TestMasterReplaced(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}), "cat")
	shared := s.open(t)
	require.NoError(t, s.ssh("-S", s.path, "-O", "stop", "host").Run())
	first := *s
	defer first.kill(syscall.SIGTERM)
	s.start(t)
	err := shared.Run(t.Context(), "true", nil, nil, nil)
	require.ErrorIs(t, err, errReplaced)
	require.ErrorIs(t, shared.Wait(), errReplaced)
	s.requireAlive(t)
}

func TestCloseKeepsTheMaster(t *testing.T) {
	t.Parallel()
	s := share(t, sshd.Start(t, sshd.Config{}))
	shared := s.open(t)
	path := remotePath(t)
	_, err := shared.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	_, err = shared.DialUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, shared.Close())
	require.NoError(t, shared.Wait())
	s.requireTidy(t)
	eventually(t, func() bool { _, err := net.Dial("unix", path); return err != nil })
	s.requireAlive(t)
}
