package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
)

// The host's sshd dies with all its connections, and comes back: the bridge
// finds its way, and the socket that was left behind is no obstacle.
func TestReconnect(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t)
	s.sign(t)
	s.sshd.Stop()
	p.waitFor(t, &p.stderr, "; connecting again in ")
	s.requireSocket(t)
	s.sshd.Restart()
	eventually(t, func() bool { return strings.Count(p.stderr.String(), serving) == 2 }, "not reconnected: %s", p.stderr.String())
	s.sign(t)
	p.signal(t, syscall.SIGTERM)
	r := p.wait(t)
	require.Zero(t, r.code)
	for _, message := range r.messages(t) {
		require.True(t, strings.HasPrefix(message, "your agent serves gpg on host at ") || strings.Contains(message, "; connecting again in "), message)
	}
	s.requireNoSocket(t)
}

// Keys are changed every 64 KiB, by the server's wish, while data flows.
func TestRekeying(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"RekeyLimit 64K"}}}.set(t)
	r := s.run(t, "host", "head -c 4000000 /dev/zero | tr '\\0' x; "+s.signing()+" >/dev/null && echo signed")
	r.requireOK(t)
	require.Len(t, r.stdout, 4000000+len("signed\n"))
}

// A signal ends the waiting between two tries, too.
func TestSignalWhileDisconnected(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t)
	s.sshd.Stop()
	p.waitFor(t, &p.stderr, "; connecting again in ")
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
}

// A host whose key has changed meanwhile is not connected to again.
func TestNoReconnectToAnotherHost(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t)
	s.sshd.Stop()
	p.waitFor(t, &p.stderr, "; connecting again in ")
	another := sshd.Start(t, sshd.Config{Account: s.host})
	require.NoError(t, os.Rename(another.HostKeyFile, s.sshd.HostKeyFile))
	s.sshd.Restart()
	r := p.wait(t)
	require.Equal(t, 255, r.code)
	require.Contains(t, r.stderr, "HAS CHANGED")
	require.Contains(t, r.stderr, "ssh-keygen", "it says what to do")
}
