package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/release"
	"gpg-bridge/internal/testkit/sshd"
)

// A skew is a scene whose laptop and host have GnuPG of different releases, and
// whose key has a subkey for signing, as gpg users of experience have it.
type skew struct {
	*scene
	signing string // fingerprint of that subkey
}

// newSkew makes the scene. The primary key can do what its usage says, and
// programs are the laptop's GnuPG; "" for this machine's, as nil for the words
// that the host's sshd is run inside of.
func newSkew(t *testing.T, usage, programs string, inside []string) *skew {
	t.Helper()
	host := sshd.NewAccount(t, sshd.AccountConfig{})
	laptop := gpghome.ForTestWith(t, programs)
	unprotected := []string{"--quiet", "--pinentry-mode", "loopback", "--passphrase", ""}
	gpg := func(args ...string) {
		_, _, err := laptop.Gpg(t.Context(), nil, append(unprotected, args...)...)
		require.NoError(t, err)
	}
	gpg("--quick-generate-key", userID, "ed25519", usage, "never")
	key, err := laptop.Key(t.Context(), userID)
	require.NoError(t, err)
	gpg("--quick-add-key", key.Fingerprint, "ed25519", "sign", "never")
	key, err = laptop.Key(t.Context(), userID)
	require.NoError(t, err)
	signing := key.Subkey
	gpg("--quick-add-key", key.Fingerprint, "cv25519", "encr", "never")
	server := sshd.Start(t, sshd.Config{Account: host, Inside: inside})
	return &skew{&scene{laptop: laptop, key: key, host: host, sshd: server}, signing}
}

// signer verifies a detached signature on the laptop and returns the
// fingerprint of the key that made it.
func (s *skew) signer(t testing.TB, signature, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signature")
	require.NoError(t, os.WriteFile(file, []byte(signature), 0o600))
	// The wrapped gpg of another release sees this machine's /tmp, too.
	status, _, err := s.laptop.Gpg(t.Context(), strings.NewReader(text), "--status-fd", "1", "--verify", file, "-")
	require.NoError(t, err)
	_, valid, found := strings.Cut(string(status), "[GNUPG:] VALIDSIG ")
	require.True(t, found, "%s", status)
	require.Contains(t, valid, s.key.Fingerprint, "the primary key's")
	return strings.Fields(valid)[0]
}

// requireAllWorks: signing, decrypting and git commit -S, each with the right
// subkey and without a word about what the agent refuses.
func (s *skew) requireAllWorks(t *testing.T) {
	t.Helper()
	r := s.run(t, "host", s.scene.signing())
	r.requireOK(t)
	require.Equal(t, s.signing, s.signer(t, r.stdout, "hello\n"))
	require.NotContains(t, r.stderr, "Forbidden")
	require.NotContains(t, r.stderr, "fast path")

	sealed, _, err := s.laptop.Gpg(t.Context(), strings.NewReader("a secret\n"), "--armor", "-r", s.key.Fingerprint, "-e")
	require.NoError(t, err)
	r = launch(t, s.laptop, bytes.NewReader(sealed), s.args("host", "gpg --batch --no-tty -d")...).wait(t)
	r.requireOK(t)
	require.Equal(t, "a secret\n", r.stdout)
	require.NotContains(t, r.stderr, "Forbidden")

	r = s.run(t, "host", strings.Replace(onHostWithGit, "KEY", s.key.Fingerprint, 1))
	r.requireOK(t)
	text, signature := commitParts(r.stdout)
	require.Equal(t, s.signing, s.signer(t, signature, text))

	r = s.run(t, "host", "gpg --batch --no-tty -K --with-colons")
	r.requireOK(t)
	require.Equal(t, 1, strings.Count(r.stdout, "sec:"))
	require.Equal(t, 2, strings.Count(r.stdout, "ssb:"))
	require.Empty(t, s.agents())
	s.requireNoSocket(t)
}

// versions logs what the host and the laptop really run.
func (s *skew) versions(t testing.TB) {
	t.Helper()
	r := s.run(t, "host", "gpg --version | head -n 1; ssh -V 2>&1")
	r.requireOK(t)
	here, _, err := s.laptop.Gpg(t.Context(), nil, "--version")
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(here), "\n")
	t.Logf("host: %q, laptop: %q", r.stdout, first)
}

// TestNewerGpgOnTheHost: a gpg that asks for more than the agent may say.
func TestNewerGpgOnTheHost(t *testing.T) {
	for _, suite := range release.Suites() {
		for _, usage := range []string{"cert", "cert,sign"} {
			t.Run(suite+"/"+usage, func(t *testing.T) {
				t.Parallel()
				s := newSkew(t, usage, "", release.Inside(t, suite))
				s.versions(t)
				s.requireAllWorks(t)

				// What it mends.
				r := s.run(t, "--no-compat", "host", s.scene.signing())
				require.Contains(t, r.stderr, "problem with fast path key listing")
				if usage == "cert" {
					require.NotZero(t, r.code)
					require.Contains(t, r.stderr, "signing failed: Unusable secret key")
				} else {
					require.Zero(t, r.code, "%s", r.stderr)
					require.Equal(t, s.key.Fingerprint, s.signer(t, r.stdout, "hello\n"), "the primary key signs")
				}
			})
		}
	}
}

// TestNewerAgentOnTheLaptop: the other way round there is nothing to mend.
func TestNewerAgentOnTheLaptop(t *testing.T) {
	for _, suite := range release.Suites() {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			s := newSkew(t, "cert,sign", release.GnuPG(t, suite), nil)
			s.versions(t)
			s.requireAllWorks(t)
		})
	}
}

// TestNewerOnBothSides: the agent answers KEYINFO itself, and forbids the list.
func TestNewerOnBothSides(t *testing.T) {
	for _, suite := range release.Suites() {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			s := newSkew(t, "cert,sign", release.GnuPG(t, suite), release.Inside(t, suite))
			s.versions(t)
			s.requireAllWorks(t)
		})
	}
}

// TestConnectMends: `connect` shows the agent as a host's gpg would see it, and
// with --no-compat as it is.
func TestConnectMends(t *testing.T) {
	t.Parallel()
	laptop := gpghome.ForTest(t)
	key, err := laptop.GenerateKey(t.Context(), gpghome.KeySpec{UserID: userID})
	require.NoError(t, err)
	ask := func(flags ...string) string {
		commands := "KEYINFO " + key.SubKeygrip + "\nKEYINFO " + strings.Repeat("0", 40) + "\nHAVEKEY --list=1\nBYE\n"
		r := launch(t, laptop, strings.NewReader(commands), append([]string{"connect"}, flags...)...).wait(t)
		r.requireOK(t)
		_, answers, found := strings.Cut(r.stdout, "\n")
		require.True(t, found)
		return answers
	}
	plain := ask("--no-compat")
	if !strings.HasPrefix(plain, "ERR 67109115 Forbidden <GPG Agent>\nERR 67109115 Forbidden <GPG Agent>\nERR 67109144 ") {
		t.Skipf("this machine's agent is no old one: %q", plain)
	}
	require.Regexp(t, "^S KEYINFO "+key.SubKeygrip+" D - - - P - - -\nOK\n"+
		"ERR 67108891 Not found <GPG Agent>\n"+
		"D (?s:.*)\nERR 67108938 Result truncated <GPG Agent>\n"+
		"OK closing connection\n$", ask())

	// Where it cannot be known that the list is all, there is none.
	socket, err := laptop.ExtraSocket(t.Context())
	require.NoError(t, err)
	require.Contains(t, ask("--agent-socket", socket), "Not found <GPG Agent>\nERR 67109144 IPC parameter error")
}
