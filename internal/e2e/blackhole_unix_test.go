//go:build unix

package e2e

import (
	"strings"
	"testing"
)

// The host falls silent without a word of TCP's: after ServerAliveInterval times
// ServerAliveCountMax the connection is given up, and made again past a socket
// on which the silent sshd still listens.
func TestBlackHole(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t, "-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2")
	s.sign(t)
	s.host.Stop()
	p.waitFor(t, &p.stderr, "; connecting again in ")
	eventually(t, func() bool { return strings.Count(p.stderr.String(), serving) == 2 }, "not reconnected: %s", p.stderr.String())
	s.sign(t)
}
