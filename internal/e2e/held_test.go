//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/gpghome"
)

const heldNote = "the path on the host is another's"

// requireNoAgent: nobody has started an agent in this home.
func requireNoAgent(t *testing.T, home *gpghome.Home, whose string) {
	t.Helper()
	_, _, err := home.Run(t.Context(), nil, "gpg-connect-agent", "--no-autostart", "GETINFO pid", "/bye")
	out, _, _ := home.Run(t.Context(), nil, "gpg-connect-agent", "--no-autostart", "GETINFO pid", "/bye")
	require.False(t, err == nil && strings.HasPrefix(string(out), "D "), "the agent of %s that the user ended was started again", whose)
}

// A session whose path on the host is another's waits for it, and meanwhile starts neither
// its own agent, which the user has ended, nor that of the other; it serves gpg when the
// other has ended.
func TestHeldPathWakesNoAgent(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	laptop := gpghome.ForTest(t)
	key, err := laptop.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
	require.NoError(t, err)
	first := s.background(t)
	_, endFirst := s.stay(t)
	first.await(t, func(status share.Status) bool { return status.State == share.Up })
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _, _ = in.Close(), out.Close() }()
	second := launchAs(t, exec.Command(program, s.args("-v", "host", "read line")...), laptop, in)
	second.waitFor(t, &second.stderr, "another connection already forwards an agent")

	require.NoError(t, s.laptop.StopAgent(t.Context()))
	require.NoError(t, laptop.StopAgent(t.Context()))
	tries := func() int { return strings.Count(second.stderr.String(), heldNote) }
	before := tries()
	eventually(t, func() bool { return tries() >= before+2 }, "it does not try again")
	requireNoAgent(t, s.laptop, "who serves")
	requireNoAgent(t, laptop, "who waits")
	require.Zero(t, first.status(t)[0].SessionsTotal)

	endFirst()
	mine := &scene{laptop: laptop, key: key, host: s.host, sshd: s.sshd}
	eventually(t, mine.isServed(t), "the second session has no bridge")
	eventually(t, func() bool { return strings.Contains(strings.Join(mine.publicKeys(t), " "), key.Fingerprint) }, "no key")
	mine.sign(t)
	_, err = out.WriteString("\n")
	require.NoError(t, err)
	require.Zero(t, second.wait(t).code)
}

// So does a bridge in the background, which connects again for each try.
func TestHeldPathWakesNoAgentInTheBackground(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	laptop := gpghome.ForTest(t)
	first := s.bridge(t)
	b := (&scene{laptop: laptop, host: s.host, sshd: s.sshd}).background(t)
	r := b.do(t, "up", "-F", s.sshd.ConfigFile, "--keys", "none", "host")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not up: another connection already forwards an agent")
	require.NoError(t, laptop.StopAgent(t.Context()))
	before := b.status(t)[0].Reconnects
	b.await(t, func(status share.Status) bool { return status.Reconnects >= before+2 && status.State == share.Waiting })
	requireNoAgent(t, laptop, "who waits")
	s.end(t, first)
	b.await(t, func(status share.Status) bool { return status.State == share.Up })
}
