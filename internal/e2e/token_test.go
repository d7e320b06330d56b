//go:build unix

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
)

// A log-in that needs a touch: one that was missed is said to be that, and `up` tries again at
// once. A bridge that has lost its connection does not ask for another unannounced, but waits
// until it is used; one whose token wants no touch comes back by itself.
func TestBackgroundLogsInByToken(t *testing.T) {
	token := &fakesshd.Token{FIDO: true, Comment: "yk", Does: fakesshd.TokenDoes{Refuses: true}}
	fakesshd.ServeToken(t, token)
	b := stage{sshd: sshd.Config{Options: []string{"AuthorizedKeysFile " + token.AuthorizedKeys(t)}}}.set(t).background(t)
	up := []string{"up", "-F", b.sshd.ConfigFile, "-o", "IdentityAgent=" + token.Socket, "-o", "IdentitiesOnly=no", "host"}
	key := "yk " + token.Fingerprint

	r := b.do(t, up...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not logged in: the ssh-agent did not sign with key "+key)
	require.Contains(t, r.stderr, "gpg-bridge up host, and touch the token when it blinks")
	require.NotContains(t, r.stderr, "permission denied")
	require.NotContains(t, r.stderr, "goes on trying")
	missed := b.await(t, func(s share.Status) bool { return s.State == share.Waiting })
	require.Equal(t, key, missed.Token)
	require.Equal(t, 1, token.Asked())

	token.Behave(fakesshd.TokenDoes{Takes: time.Second})
	r = b.do(t, up...)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Contains(t, r.stderr, "host: the log-in waits for a token: key "+key+"; touch it when it blinks")
	require.Contains(t, r.stderr, "host: up: your agent serves gpg")
	require.Equal(t, 2, token.Asked())
	b.sign(t)

	lose := func() {
		b.sshd.Stop()
		b.await(t, func(s share.Status) bool { return s.State == share.Waiting })
		b.sshd.Restart()
	}
	lose()
	lost := b.await(t, func(s share.Status) bool { return s.Problem != nil && s.Problem.Remedy != "" })
	require.Contains(t, lost.Problem.Text, "is tried again when the bridge is used")
	time.Sleep(3 * time.Second) // the next try would be after one
	require.Equal(t, 2, token.Asked(), "it asked for a touch unannounced")
	require.Equal(t, share.Waiting, b.status(t)[0].State)

	token.Behave(fakesshd.TokenDoes{Untouched: true})
	r = b.do(t, up...)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Empty(t, b.status(t)[0].Token)
	lose()
	again := b.await(t, func(s share.Status) bool { return s.State == share.Up })
	require.Equal(t, missed.PID, again.PID)
	require.Equal(t, 4, token.Asked())
}
