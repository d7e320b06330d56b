package sshfwd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// keyRing is a directory of keys for the comparisons with ssh: five plain ones,
// an encrypted one, an RSA one, a certificate for k4 beside its key, and others
// for k0 and k3 elsewhere.
type keyRing struct{ dir string }

func newKeyRing(t *testing.T) *keyRing {
	t.Helper()
	r := &keyRing{dir: env.ShortDir(t)}
	require.NoError(t, os.Chmod(r.dir, 0o755))
	for _, name := range []string{"ca", "k0", "k1", "k2", "k3", "k4"} {
		sshkeys.Keygen(t, r.dir, name, "-t", "ed25519")
	}
	sshkeys.Keygen(t, r.dir, "locked", "-t", "ed25519", "-N", "sesame")
	sshkeys.Keygen(t, r.dir, "rsa", "-t", "rsa", "-b", "2048")
	sshkeys.Keygen(t, r.dir, "small", "-t", "rsa", "-b", "1024")
	for _, name := range []string{"k0", "k3", "k4"} {
		out, err := exec.Command("ssh-keygen", "-q", "-s", r.path("ca"), "-I", name, "-n", "nobody-else,root", r.path(name+".pub")).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	require.NoError(t, os.Rename(r.path("k0-cert.pub"), r.path("cert0")))
	require.NoError(t, os.Rename(r.path("k3-cert.pub"), r.path("cert3")))
	// A key whose private half only an agent has.
	public, err := os.ReadFile(r.path("k2.pub"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(r.path("only.pub"), public, 0o644))
	return r
}

func (r *keyRing) path(name string) string { return filepath.Join(r.dir, name) }

func (r *keyRing) paths(names string) (paths []string) {
	for _, name := range strings.Fields(names) {
		paths = append(paths, r.path(name))
	}
	return paths
}

// offeredKeys are the keys in what a server logged, in order, with the outcome:
// "Failed ED25519 SHA256:…".
func offeredKeys(log string) (keys []string) {
	line := regexp.MustCompile(`(?m)^(Failed|Accepted|Partial) publickey for .* ssh2: (.*?)\r?$`)
	for _, m := range line.FindAllStringSubmatch(log, -1) {
		keys = append(keys, m[1]+" "+m[2])
	}
	return keys
}

// The same keys are offered in the same order, and the same one is accepted, as with the
// installed ssh, given the same agent and the same configuration.
func TestAuthOrderEqualsOpenSSH(t *testing.T) {
	t.Parallel()
	ring := newKeyRing(t)
	srv := sshd.Start(t, sshd.Config{Options: []string{
		"MaxAuthTries 20", "TrustedUserCAKeys " + ring.path("ca.pub"), "AuthorizedKeysFile " + ring.path("authorized"),
	}})
	for i, c := range []struct {
		agent, files, certs string
		only                bool
		authorized          string
		options             string
		fewer               int // offers that ssh makes in vain and we do not
	}{
		{},
		{files: "k0 k1 k2"},
		{files: "k0 k1 k2", authorized: "k1"},
		{agent: "k0 k1 k2"},
		{agent: "k0 k1 k2", only: true},
		{agent: "k0 k1 k2", files: "k2 k1", authorized: "k0"},
		{agent: "k0 k1 k2", files: "k3 k2", only: true},
		{agent: "k0 k1 k2", files: "k3 k2 k1", authorized: "k3"},
		{agent: "k0 k1 k2", files: "only.pub", only: true, authorized: "k2"},
		{agent: "k0 k1", files: "only.pub", only: true, authorized: "k2"},
		{agent: "k1", files: "k0", certs: "cert0"},
		{agent: "k0", files: "k1", certs: "cert0"},
		{agent: "k0 k1", files: "k0", certs: "cert0", only: true},
		{agent: "k0 k3", files: "k1", certs: "cert3 cert0"},
		{files: "k1 k3 k0", certs: "cert0 cert3"},
		{files: "k1 k4"},
		{files: "k4", certs: "cert0", authorized: "k4"},
		{agent: "k4 k1", files: "k2 k4"},
		{agent: "k4", files: "k4", only: true},
		{agent: "k4", files: "k2", authorized: "k2"},
		{agent: "rsa k0", files: "rsa", authorized: "rsa"},
		{agent: "k0", files: "rsa k1", authorized: "rsa", options: "PubkeyAcceptedAlgorithms rsa-sha2-256"},
		{agent: "k0 rsa", options: "PubkeyAcceptedAlgorithms -ssh-ed25519"},
		{agent: "small k0", files: "small rsa", options: "RequiredRSASize 2048"},
		{agent: "small k0", files: "k1", authorized: "small", options: "RequiredRSASize 1024"},
		{files: "locked k1", authorized: "k1", fewer: 1},    // nobody to ask for the passphrase
		{files: "k0 k0.pub k1", authorized: "k1", fewer: 1}, // refused already
		{files: "k1", certs: "cert0"},                       // no private key
		{files: "locked k1", authorized: "locked k1"},
		{agent: "locked", files: "k1 locked", authorized: "locked"},
		{agent: "k0 k1 k2 k3 k4 rsa small", files: "k3", authorized: "k3"},
		{files: "k0 k1", authorized: "k1", options: "PubkeyAuthentication no"},
		{files: "missing k1", authorized: "k1"},
	} {
		t.Run(fmt.Sprintf("%02d agent=%s files=%s certs=%s only=%v authorized=%s %s",
			i, c.agent, c.files, c.certs, c.only, c.authorized, c.options), func(t *testing.T) {
			var authorized strings.Builder
			for _, name := range strings.Fields(c.authorized) {
				fmt.Fprintln(&authorized, sshkeys.PublicLine(t, ring.path(name+".pub")))
			}
			require.NoError(t, os.WriteFile(ring.path("authorized"), []byte(authorized.String()), 0o644))
			socket := "none"
			if c.agent != "" {
				socket = startUnlockedAgent(t, ring.paths(c.agent)...)
			}
			resolved := orderConfig(t, srv, socket, c.only, c.options, ring.paths(c.files), ring.paths(c.certs))
			theirs, their := offeredTo(t, srv, func() bool {
				return exec.Command("ssh", "-F", resolved, "-o", "BatchMode=yes", "host", "true").Run() == nil
			})
			ours, our := offeredTo(t, srv, func() bool {
				resolved, err := config.Resolve(t.Context(), config.To("host", "-F", resolved).Batch())
				require.NoError(t, err)
				client, err := Dial(dialContext(t), resolved, DialOptions{Log: env.QuietLog()})
				if err == nil {
					require.NoError(t, client.Close())
				}
				return err == nil
			})
			require.Equal(t, their, our)
			require.Len(t, ours, len(theirs)-c.fewer)
			if c.fewer == 0 {
				require.Equal(t, theirs, ours)
			}
			require.Subset(t, theirs, ours)
		})
	}
}

// offeredTo returns what a log-in offered to the server, and whether it succeeded.
func offeredTo(t *testing.T, srv *sshd.Server, login func() bool) ([]string, bool) {
	t.Helper()
	before := len(srv.Log())
	ok := login()
	var keys []string
	require.Eventually(t, func() bool { // one process of sshd's lets us in, and another one writes it down
		keys = offeredKeys(srv.Log()[before:])
		return !ok || slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "Accepted ") })
	}, 30*time.Second, 5*time.Millisecond)
	return keys, ok
}

func orderConfig(t *testing.T, srv *sshd.Server, agent string, only bool, options string, files, certs []string) string {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "Host host\nHostName %s\nPort %d\nUser %s\nUserKnownHostsFile %s\nGlobalKnownHostsFile /dev/null\n",
		srv.Host, srv.Port, srv.User, srv.KnownHosts)
	fmt.Fprintf(&text, "IdentityAgent %s\nPreferredAuthentications publickey\nControlPath none\n%s\n", agent, options)
	if only {
		text.WriteString("IdentitiesOnly yes\n")
	}
	for _, file := range files {
		fmt.Fprintln(&text, "IdentityFile", file)
	}
	if len(files) == 0 {
		text.WriteString("IdentityFile none\n")
	}
	for _, cert := range certs {
		fmt.Fprintln(&text, "CertificateFile", cert)
	}
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// startUnlockedAgent is startAgent, and knows the passphrase of "locked".
func startUnlockedAgent(t *testing.T, files ...string) string {
	t.Helper()
	socket := startAgent(t)
	for _, file := range files {
		add := exec.Command(env.Tool(t, "ssh-add"), "-q", file)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket, "SSH_ASKPASS_REQUIRE=force", "SSH_ASKPASS="+askpassScript(t, "echo sesame"))
		said, err := add.CombinedOutput()
		require.NoError(t, err, string(said))
	}
	return socket
}

// askpassScript writes a program for SSH_ASKPASS.
func askpassScript(t *testing.T, commands string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "askpass")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+commands+"\n"), 0o700))
	return path
}
