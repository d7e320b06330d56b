package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// onHostWithGit is what a user types on the host.
const onHostWithGit = `set -e
rm -rf project && git init -q project && cd project
git config user.name Alice && git config user.email alice@example.org
git config user.signingkey KEY
echo hello >file && git add file
git commit -q -S -m signed
git tag -s v1 -m signed
git verify-commit HEAD
git verify-tag v1
git cat-file commit HEAD`

func TestSignAndDecrypt(t *testing.T) {
	for _, algo := range []string{gpghome.Ed25519, gpghome.RSA3072} {
		t.Run(algo, func(t *testing.T) {
			s := stage{key: gpghome.KeySpec{Algo: algo}}.set(t)
			sealed, _, err := s.laptop.Gpg(t.Context(), strings.NewReader("a secret\n"), "--armor", "-r", s.key.Fingerprint, "-e")
			require.NoError(t, err)
			require.NoDirExists(t, s.host.Path(".gnupg"), "the account is to be a fresh one")

			for range 2 {
				r := s.runSigning(t)
				require.NotContains(t, r.stderr, "gpg-bridge:")

				r = s.run(t, "host", "echo hello | gpg --batch --no-tty -u "+s.key.Fingerprint+" --clearsign")
				r.requireOK(t)
				text, said, err := s.laptop.Gpg(t.Context(), strings.NewReader(r.stdout), "-d")
				require.NoError(t, err)
				require.Equal(t, "hello\n", string(text))
				require.Contains(t, string(said), "Good signature")

				r = launch(t, s.laptop, bytes.NewReader(sealed), s.args("host", "gpg --batch --no-tty -d")...).wait(t)
				r.requireOK(t)
				require.Equal(t, "a secret\n", r.stdout)

				r = s.run(t, "host", strings.Replace(onHostWithGit, "KEY", s.key.Fingerprint, 1))
				r.requireOK(t)
				require.Equal(t, 2, strings.Count(r.stderr, "Good signature from \"Alice"), "%s", r.stderr)
				s.verifyCommit(t, r.stdout)

				s.requireNoSocket(t)
				require.Empty(t, s.agents())
			}
			secrets, err := filepath.Glob(s.host.Path(".gnupg/private-keys-v1.d/*.key"))
			require.NoError(t, err)
			require.Empty(t, secrets)
		})
	}
}

// verifyCommit verifies a commit object on the laptop: what is signed is the
// object without its gpgsig header.
func (s *scene) verifyCommit(t testing.TB, object string) {
	t.Helper()
	signed, signature := commitParts(object)
	s.verify(t, []byte(signature), signed)
}

func commitParts(object string) (text, sealed string) {
	var signed, signature strings.Builder
	in := false
	for line := range strings.Lines(object) {
		switch first, isFirst := strings.CutPrefix(line, "gpgsig "); {
		case isFirst:
			in = true
			signature.WriteString(first)
		case in && line[0] == ' ':
			signature.WriteString(line[1:])
		default:
			in = false
			signed.WriteString(line)
		}
	}
	return signed.String(), signature.String()
}

// The host's own agent is in the way: gpg started it before there was a bridge,
// and a client holds it.
func TestOwnAgentOfTheHost(t *testing.T) {
	for name, runtimeDir := range map[string]bool{"in the home": false, "in run user": true} {
		t.Run(name, func(t *testing.T) {
			s := stage{account: sshd.AccountConfig{RuntimeDir: runtimeDir}}.set(t)
			s.host.Run(t, "gpg --list-keys; gpg-connect-agent /bye")
			require.Len(t, s.agents(), 1)
			idle := dial(t, s.socket(t))
			require.Equal(t, "OK\n", idle.ask(t, "NOP\n"))

			s.runSigning(t)
			require.Empty(t, s.agents())
			s.requireNoSocket(t)
			s.runSigning(t)
		})
	}
}

func TestStaleSocketOnTheHost(t *testing.T) {
	s := stage{}.set(t)
	s.host.Run(t, "gpg --list-keys; gpg-connect-agent /bye")
	agents := s.agents()
	require.Len(t, agents, 1)
	agent, err := os.FindProcess(agents[0])
	require.NoError(t, err)
	require.NoError(t, agent.Kill())
	eventually(t, func() bool { return len(s.agents()) == 0 }, "the agent does not end")
	s.requireSocket(t)
	s.runSigning(t)
	s.requireNoSocket(t)
}

func TestLoginShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "fish", "tcsh"} {
		t.Run(shell, func(t *testing.T) {
			s := stage{account: sshd.AccountConfig{Shell: shell}}.set(t)
			r := s.runSigning(t)
			require.NotContains(t, r.stderr, "gpg-bridge:")
			// A shell prints what its rc files make it.
			for _, rc := range []string{".bashrc", ".tcshrc", ".config/fish/config.fish"} {
				s.host.WriteFile(t, rc, []byte("echo welcome\n"), 0o600)
			}
			r = s.run(t, "host", strings.Replace(s.signing(), "-o -", "-o signature", 1))
			require.Zero(t, r.code, "%s", r.stderr)
			require.NotContains(t, r.stderr, "gpg-bridge:")
			s.verify(t, s.host.ReadFile(t, "signature"), "hello\n")
		})
	}
}

func TestPublicKeysComeAlong(t *testing.T) {
	s := stage{}.set(t)
	second, err := s.laptop.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Bob <bob@example.org>"})
	require.NoError(t, err)
	keyring := s.host.Path(".gnupg/pubring.kbx")

	s.run(t, "--keys", "none", "host", "true").requireOK(t)
	require.Empty(t, s.publicKeys(t))

	s.run(t, "--keys", second.Fingerprint, "host", "true").requireOK(t)
	require.Equal(t, []string{second.Fingerprint}, s.publicKeys(t))

	s.run(t, "host", "true").requireOK(t)
	require.ElementsMatch(t, []string{s.key.Fingerprint, second.Fingerprint}, s.publicKeys(t))
	require.Contains(t, s.host.Run(t, "gpg --no-autostart --export-ownertrust"), s.key.Fingerprint+":6:")

	before, err := os.Stat(keyring)
	require.NoError(t, err)
	s.run(t, "host", "true").requireOK(t)
	after, err := os.Stat(keyring)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "nothing was missing")
	require.Equal(t, before.Size(), after.Size())
	require.Empty(t, s.agents())
}

func TestKeyThatIsNotThere(t *testing.T) {
	s := stage{}.set(t)
	r := s.run(t, "--keys", "nobody@example.org", "host", "echo on")
	require.Zero(t, r.code)
	require.Equal(t, "on\n", r.stdout)
	r.requireWarning(t, `no public key "nobody@example.org"`, "--keys none")
}

// A key that changed here is the one that the host's gpg uses.
func TestSignsWithANewSubkey(t *testing.T) {
	s := skew{scene: stage{}.set(t)}
	s.runSigning(t)
	_, _, err := s.laptop.Gpg(t.Context(), nil, "--quiet", "--pinentry-mode", "loopback", "--passphrase", "",
		"--quick-add-key", s.key.Fingerprint, "ed25519", "sign", "never")
	require.NoError(t, err)
	listed, _, err := s.laptop.Gpg(t.Context(), nil, "--with-colons", "--list-keys", s.key.Fingerprint)
	require.NoError(t, err)
	r := s.run(t, "host", s.scene.signing())
	r.requireOK(t)
	signer := s.signer(t, r.stdout, "hello\n")
	require.NotEqual(t, s.key.Fingerprint, signer)
	_, after, found := strings.Cut(string(listed), signer)
	require.True(t, found)
	require.NotContains(t, after, "\nfpr:", "the last subkey")
}
