//go:build unix

package mux

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
)

// persisting shares a connection that ends a second after its last use.
func persisting(t *testing.T, server *sshd.Server) *sharing {
	t.Helper()
	s := share(t, server)
	s.kill(15)
	cmd := server.SSH("-M", "-S", s.path, "-oControlPersist=1", "-N", "host")
	require.NoError(t, cmd.Run())
	t.Cleanup(func() { _ = Terminate(t.Context(), s.path) })
	require.True(t, IsShared(t.Context(), s.path))
	return s
}

func TestHoldKeepsAMaster(t *testing.T) {
	s := persisting(t, sshd.Start(t, sshd.Config{}))
	lease, err := Hold(t.Context(), s.path)
	require.NoError(t, err)
	held := s.open(t)
	time.Sleep(3 * time.Second) // longer than its ControlPersist
	require.False(t, held.isOver())
	require.NoError(t, lease.Close())
	require.Error(t, held.Wait())
	require.False(t, IsShared(t.Context(), s.path))
	_, err = Hold(t.Context(), s.path)
	require.ErrorIs(t, err, ErrNoMaster)
}

// A retired master ends with its last session, and not before; a terminated one at once.
func TestRetireAndTerminate(t *testing.T) {
	server := sshd.Start(t, sshd.Config{})
	s := persisting(t, server)
	held, session := s.open(t), server.SSH("-S", s.path, "host", "cat")
	in, err := session.StdinPipe()
	require.NoError(t, err)
	out, err := session.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, session.Start())
	_, err = in.Write([]byte("x"))
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)

	require.NoError(t, Retire(t.Context(), s.path))
	require.False(t, IsShared(t.Context(), s.path))
	_, err = in.Write([]byte("y"))
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err, "the session goes on")
	require.False(t, held.isOver())
	require.NoError(t, in.Close())
	require.NoError(t, session.Wait())
	require.Error(t, held.Wait())
	require.NoError(t, Retire(t.Context(), s.path), "nobody is there")

	s = persisting(t, server)
	lease, err := Hold(t.Context(), s.path)
	require.NoError(t, err)
	held = s.open(t)
	require.NoError(t, Terminate(t.Context(), s.path))
	require.Error(t, held.Wait())
	require.NoError(t, lease.Close())
}
