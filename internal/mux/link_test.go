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

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/testenv"
	"gpg-bridge/sshfwd"
)

func TestNoMaster(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
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
	server := sshdtest.Start(t, sshdtest.Config{})
	s := share(t, server)
	link := s.open(t)
	require.Equal(t, s.cmd.Process.Pid, link.PID())

	var out, errOut bytes.Buffer
	require.NoError(t, link.Run(t.Context(), "cat; echo bad >&2", strings.NewReader("good\n"), &out, &errOut))
	require.Equal(t, "good\n", out.String())
	require.Equal(t, "bad\n", errOut.String())

	out.Reset()
	require.NoError(t, link.Run(t.Context(), "head -c 3000000 /dev/zero", nil, &out, nil))
	require.Equal(t, 3000000, out.Len(), "all of the output is there when it returns")

	var exit *sshfwd.ExitError
	require.ErrorAs(t, link.Run(t.Context(), "exit 7", nil, nil, nil), &exit)
	require.Equal(t, 7, exit.Status)
	require.ErrorIs(t, link.Run(t.Context(), "kill -9 $$", nil, nil, nil), sshfwd.ErrNoExitStatus)
	require.Error(t, link.Run(t.Context(), "", nil, nil, nil))

	// A Read of stdin that hangs holds nobody up.
	r, w := io.Pipe()
	require.NoError(t, link.Run(t.Context(), "true", r, nil, nil))
	_ = w.Close()

	failed := errors.New("full")
	err := link.Run(t.Context(), "yes", nil, failingWriter{failed}, nil)
	require.ErrorIs(t, err, failed)
	require.Equal(t, 1, logins(server))
	s.requireTidy(t)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// What does not end, ends with ctx, and leaves the master as it was.
func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{}))
	link := s.open(t)
	before := descriptors(t, s.cmd.Process.Pid)
	for range 20 {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		err := link.Run(ctx, "echo here; cat", readerOf(t), writerFunc(func(p []byte) (int, error) {
			cancel(stop)
			return len(p), nil
		}), nil)
		require.ErrorIs(t, err, stop)
	}
	s.requireAlive(t)
	eventually(t, func() bool { return descriptors(t, s.cmd.Process.Pid) <= before })
}

// readerOf is an input that does not end before the test.
func readerOf(t testing.TB) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	return r
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSessionRefused(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{Options: []string{"MaxSessions 0"}}))
	var refused *RefusedError
	require.ErrorAs(t, s.open(t).Run(t.Context(), "true", nil, nil, nil), &refused)
	require.False(t, refused.Denied)
	require.NotEmpty(t, refused.Hint())
}

// However the master ends, it is noticed without asking.
func TestMasterEnds(t *testing.T) {
	t.Parallel()
	server := sshdtest.Start(t, sshdtest.Config{})
	for name, end := range map[string]func(*sharing){
		"asked to":   func(s *sharing) { require.NoError(t, server.SSH("-S", s.path, "-O", "exit", "host").Run()) },
		"terminated": func(s *sharing) { s.kill(syscall.SIGTERM) },
		"killed":     func(s *sharing) { s.kill(syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := share(t, server)
			link := s.open(t)
			forward, err := link.Forward(t.Context(), remotePath(t), echo)
			require.NoError(t, err)
			requireEcho(t, forward.remote)
			running := make(chan error, 1)
			go func() { running <- link.Run(t.Context(), "sleep 100", nil, nil, nil) }()
			end(s)
			var lost *LostError
			require.ErrorAs(t, link.Wait(), &lost)
			require.ErrorAs(t, <-running, &lost)
			require.ErrorAs(t, link.Run(t.Context(), "true", nil, nil, nil), &lost)
			require.NoError(t, forward.Close(t.Context()))
			require.NoError(t, link.Close())
			s.requireTidy(t)
			_, err = Open(t.Context(), s.options())
			require.ErrorIs(t, err, ErrNoMaster)
		})
	}
}

// The master's ssh ends with its user's command, whatever we have there.
func TestUserIsNotHeldUp(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{}), "cat")
	link := s.open(t)
	path := remotePath(t)
	_, err := link.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	requireEcho(t, path)
	conn, err := link.DialUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, link.Run(t.Context(), "true", nil, nil, nil))
	require.NoError(t, s.stdin.Close())
	select {
	case <-s.ended:
	case <-time.After(within):
		t.Fatal("the user's ssh does not end with their command")
	}
	var lost *LostError
	require.ErrorAs(t, link.Wait(), &lost)
}

// A master that is stopped is given up on when there is reason to ask.
func TestStoppedMaster(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{}))
	link := s.open(t)
	link.CheckAlive(t.Context())
	require.False(t, link.isOver())
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, s.options())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	link.CheckAlive(ctx)
	var lost *LostError
	require.ErrorAs(t, link.Wait(), &lost)
}

// One that has taken the place of ours is not asked for what ours has.
func TestMasterReplaced(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{}), "cat")
	link := s.open(t)
	require.NoError(t, s.ssh("-S", s.path, "-O", "stop", "host").Run())
	first := *s
	defer first.kill(syscall.SIGTERM)
	s.start(t)
	err := link.Run(t.Context(), "true", nil, nil, nil)
	require.ErrorIs(t, err, errReplaced)
	require.ErrorIs(t, link.Wait(), errReplaced)
	s.requireAlive(t)
}

func TestCloseKeepsTheMaster(t *testing.T) {
	t.Parallel()
	s := share(t, sshdtest.Start(t, sshdtest.Config{}))
	link := s.open(t)
	path := remotePath(t)
	_, err := link.Forward(t.Context(), path, echo)
	require.NoError(t, err)
	_, err = link.DialUnix(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, link.Close())
	require.NoError(t, link.Wait())
	s.requireTidy(t)
	eventually(t, func() bool { _, err := net.Dial("unix", path); return err != nil })
	s.requireAlive(t)
}
