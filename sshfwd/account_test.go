package sshfwd

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// accountOf logs in and returns the account.
func accountOf(t *testing.T, c *config.Config) (id string, forced bool) {
	t.Helper()
	client, err := Dial(dialContext(t), c, DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	require.NoError(t, client.Close())
	require.NoError(t, client.Wait())
	return client.Account(), client.CommandForced()
}

// The account is the same for the same key and host, and differs for another key, which
// may have other options in authorized_keys.
func TestAccountIsTheKeys(t *testing.T) {
	dir := t.TempDir()
	one, two := sshkeys.Keygen(t, dir, "one", "-t", "ed25519"), sshkeys.Keygen(t, dir, "two", "-t", "ed25519")
	srv := serverFor(t, one+".pub", two+".pub")
	first, forced := accountOf(t, authConfig(t, srv, []string{one}))
	require.False(t, forced)
	again, _ := accountOf(t, authConfig(t, srv, []string{one, two}))
	require.Equal(t, first, again)
	other, _ := accountOf(t, authConfig(t, srv, []string{two}))
	require.NotEqual(t, first, other)

	elsewhere := serverFor(t, one+".pub")
	c := authConfig(t, elsewhere, []string{one})
	there, _ := accountOf(t, c)
	require.NotEqual(t, first, there)
	require.NotContains(t, []string{first, there, ""}, AccountOf(c))
}

// A certificate counts as its key, and shows whether it forces a command.
func TestAccountOfACertificate(t *testing.T) {
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	ca, key := sshkeys.Keygen(t, dir, "ca", "-t", "ed25519"), sshkeys.Keygen(t, dir, "key", "-t", "ed25519")
	srv := sshd.Start(t, sshd.Config{Options: []string{"TrustedUserCAKeys " + ca + ".pub"}})
	sign := func(options ...string) (string, bool) {
		args := append([]string{"-q", "-s", ca, "-I", "test", "-n", srv.User}, options...)
		out, err := exec.Command("ssh-keygen", append(args, key+".pub")...).CombinedOutput()
		require.NoError(t, err, string(out))
		return accountOf(t, authConfig(t, srv, []string{key}))
	}
	first, forced := sign()
	require.False(t, forced)
	again, forced := sign("-O", "force-command=echo no")
	require.True(t, forced)
	require.Equal(t, first, again)
}
