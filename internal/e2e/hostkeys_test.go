package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHostsOwnKeysAndPassphrases holds what the README says of what gpg on the host
// does not do as before while a bridge is up, and of how to do it all the same.
func TestHostsOwnKeysAndPassphrases(t *testing.T) {
	s := stage{}.set(t)
	s.host.Run(t, "gpg --batch --passphrase '' --quick-gen-key 'Host <host@example.org>' ed25519 sign never 2>&1 && echo hello >file")
	bridge := s.bridge(t)
	shell := func(command string) (string, error) {
		stdout, stderr, err := s.onHost(nil, "sh", "-c", command)
		return string(stdout) + string(stderr), err
	}

	said, err := shell("gpg --batch --yes -u host@example.org -b file")
	require.Error(t, err)
	require.Contains(t, said, "No secret key")
	said, err = shell("gpg --batch --yes -c file")
	require.Error(t, err)
	require.Contains(t, said, "Forbidden")

	said, err = shell("cp -a ~/.gnupg ~/.gnupg-host && GNUPGHOME=~/.gnupg-host gpg --batch --yes -u host@example.org -b file")
	require.NoError(t, err, said)
	said, err = shell("gpg --batch --verify file.sig file")
	require.NoError(t, err, said)
	said, err = shell("echo horse | gpg --batch --yes --passphrase-fd 0 -c file && echo horse | gpg --batch --passphrase-fd 0 -d file.gpg")
	require.NoError(t, err, said)
	require.True(t, strings.HasPrefix(said, "hello\n"), said)

	s.sign(t)
	s.end(t, bridge)
}
