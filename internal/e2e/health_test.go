//go:build unix

package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/sshd"
)

// steal has the host's own agent take the socket, as it does when something
// removes it, or when a user manager starts.
func (b *background) steal(t *testing.T) {
	t.Helper()
	b.host.Run(t, "rm -f "+b.socket(t)+"; gpgconf --launch gpg-agent")
	require.Len(t, b.agents(), 1)
}

// look has the bridge look now, as whoever begins to use it does, and returns
// once it is as wanted.
func (b *background) look(t *testing.T, wanted func(share.Status) bool) share.Status {
	t.Helper()
	lease, err := b.dir.Lease(t.Context(), b.status(t)[0].ID)
	require.NoError(t, err)
	defer lease.Close()
	return b.await(t, wanted)
}

// What took the path is sent away, at first at once and then after a pause; a path
// that is free is taken at once, and status says at any time how it is.
func TestBackgroundTakesThePathBack(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	b.steal(t)
	first := b.look(t, func(s share.Status) bool {
		return s.State == share.Up && s.Problem != nil && strings.Contains(s.Problem.Text, "it was taken back")
	})
	require.Contains(t, first.Problem.Remedy, "systemctl --user mask")
	b.sign(t)
	eventually(t, func() bool { return len(b.agents()) == 0 }, "the agent that lost its socket does not end")

	b.steal(t)
	taken := b.look(t, func(s share.Status) bool {
		return s.State == share.Taken && strings.Contains(s.Problem.Text, "has taken the socket again")
	})
	require.NotEmpty(t, taken.Problem.Remedy)
	r := b.do(t, "status")
	require.Contains(t, r.stdout, "taken")
	require.Contains(t, r.stdout, taken.Problem.Text[:20])
	r = b.do(t, "up", "-F", b.sshd.ConfigFile, "host")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not up: the host's own agent")
	require.NoError(t, syscall.Kill(b.agents()[0], syscall.SIGKILL))
	b.look(t, func(s share.Status) bool { return s.State == share.Up && s.Since.After(taken.Since) })
	b.sign(t)
	b.up(t)

	b.host.Run(t, "rm "+b.socket(t)) // and nobody is there
	b.look(t, func(share.Status) bool { _, err := os.Lstat(b.socket(t)); return err == nil })
	b.sign(t)
}

// systemd's user manager unlinks what is at the path and listens there; it starts
// an agent for whoever comes, and goes on listening when that ends.
func TestBackgroundAndASocketUnit(t *testing.T) {
	b := stage{account: sshd.AccountConfig{RuntimeDir: true}}.set(t).background(t)
	b.up(t)
	end := b.socketUnit(t)
	b.look(t, func(s share.Status) bool { return s.State == share.Up && s.Problem != nil })
	b.sign(t)
	end()
	b.sign(t)
}

// Without an agent that answers the bridge is not up, and up again when there is
// one.
func TestBackgroundWithoutAnAgent(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	start := time.Now()
	goOn := b.stopAgent(t)
	status := b.look(t, func(s share.Status) bool { return s.State == share.NoAgent })
	require.Contains(t, status.Problem.Text, "no greeting from the agent")
	require.Contains(t, status.Problem.Remedy, "gpgconf --kill gpg-agent")
	require.WithinRange(t, status.Problem.At, start, time.Now())
	goOn()
	b.await(t, func(s share.Status) bool { return s.State == share.Up })
	b.sign(t)
	require.Equal(t, status.PID, b.status(t)[0].PID)
}
