//go:build unix

package agentside

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

// TestAgentIsFoundAgain: gpgconf is asked until there was a connection, and again
// after one failed.
func TestAgentIsFoundAgain(t *testing.T) {
	home := gpghome.ForTest(t)
	require.NoError(t, home.StartAgent(t.Context()))
	extra, err := home.ExtraSocket(t.Context())
	require.NoError(t, err)
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	require.Empty(t, agent.Path())
	for range 2 {
		session, err := agent.Connect(t.Context())
		require.NoError(t, err)
		require.Equal(t, extra, agent.Path())
		require.NoError(t, session.Disconnect())
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = agent.Connect(over)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, agent.Path())
	_, err = (&Agent{Locator: &Locator{Gpgconf: "/nonexistent/gpgconf"}}).Connect(t.Context())
	require.Error(t, err)
}

func TestPathOfExactlyTheLimit(t *testing.T) {
	dir := env.ShortDir(t)
	const room = len(syscall.RawSockaddrUnix{}.Path) - 1 // and a NUL
	longest := filepath.Join(dir, strings.Repeat("x", room-len(dir)-1))
	require.Len(t, longest, room)
	listener, err := net.Listen("unix", longest)
	require.NoError(t, err)
	defer listener.Close()
	conn, err := dialUnix(t.Context(), longest)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	_, err = dialUnix(t.Context(), longest+"x")
	require.ErrorContains(t, err, "too long")
}

// TestDialThatIsTooLateFromTheBeginning says so, and not that the agent is busy.
func TestDialThatIsTooLateFromTheBeginning(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := dialUnix(over, greetingSocket(t))
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "too many connections")
}

// TestFullAgentThatLeaves: one that has too many connections is waited for, and no
// longer when it is gone.
func TestFullAgentThatLeaves(t *testing.T) {
	path, _ := fullSocket(t)
	dialled := make(chan error, 1)
	go func() {
		_, err := dialUnix(t.Context(), path)
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("the backlog is full, and the dial says %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, os.Remove(path))
	select {
	case err := <-dialled:
		require.ErrorIs(t, err, os.ErrNotExist)
	case <-time.After(10 * time.Second):
		t.Fatal("the dial waits for nobody")
	}
}

// TestPathIsTakenAsItIs: what gpgconf prints is the path, in a directory of one
// letter, too, and one that is not absolute is none.
func TestPathIsTakenAsItIs(t *testing.T) {
	for printed, want := range map[string]string{
		`/c/Users/me/S\n`: "/c/Users/me/S", `/run/a b\r\n`: "/run/a b", `/run/a `: "/run/a ", `a\n`: "", ``: "",
	} {
		l := &Locator{Gpgconf: fakeGpgconf(t, "printf '"+printed+"'\n")}
		at, err := l.Locate(t.Context())
		if want == "" {
			requireHint[*GpgconfError](t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, at.Path())
	}
}

// TestAlive: the agent is looked for and never started, and one that the user named
// and that is not there is an error, since no Connect could start it.
func TestAlive(t *testing.T) {
	home := gpghome.ForTest(t)
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	for _, want := range []bool{false, true} {
		if want {
			require.NoError(t, home.StartAgent(t.Context()))
		}
		running, err := agent.Alive(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, running)
	}
	named := &Agent{Locator: &Locator{AgentSocket: filepath.Join(env.ShortDir(t), "none")}}
	running, err := named.Alive(t.Context())
	requireHint[*NoAgentError](t, err)
	require.False(t, running)
	_, err = (&Agent{Locator: &Locator{Gpgconf: "/nonexistent/gpgconf"}}).Alive(t.Context())
	require.Error(t, err)
	mute := &Agent{Locator: &Locator{AgentSocket: filepath.Join(env.ShortDir(t), "fifo")}}
	require.NoError(t, syscall.Mkfifo(mute.Locator.AgentSocket, 0o600))
	_, err = mute.Alive(t.Context())
	requireHint[*SocketError](t, err)
}

// TestTokenIsNextToTheSocket that was looked for, empty, the user's alone, and gone
// afterwards.
func TestTokenIsNextToTheSocket(t *testing.T) {
	dir := env.ShortDir(t)
	agent := &Agent{Locator: &Locator{AgentSocket: filepath.Join(dir, "none")}}
	_, _, err := agent.PutToken()
	require.ErrorIs(t, err, errNotLocated)
	_, err = agent.Connect(t.Context())
	require.Error(t, err)
	name, remove, err := agent.PutToken()
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, name))
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.Equal(t, os.FileMode(0o600), info.Mode())
	remove()
	require.NoFileExists(t, filepath.Join(dir, name))
	require.NoError(t, os.Remove(dir))
	_, _, err = agent.PutToken()
	require.ErrorIs(t, err, os.ErrNotExist)
}
