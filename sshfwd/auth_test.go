package sshfwd

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
)

// serverFor is a server that lets in the keys with these public halves.
func serverFor(t *testing.T, publicFiles ...string) *sshd.Server {
	t.Helper()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	var text strings.Builder
	for _, file := range publicFiles {
		fmt.Fprintln(&text, sshkeys.PublicLine(t, file))
	}
	authorized := filepath.Join(dir, "authorized_keys")
	require.NoError(t, os.WriteFile(authorized, []byte(text.String()), 0o644))
	return sshd.Start(t, sshd.Config{Options: []string{"AuthorizedKeysFile " + authorized}})
}

// authConfig is the configuration with these identity files and nothing else.
func authConfig(t *testing.T, srv *sshd.Server, identities []string, options ...string) *config.Config {
	t.Helper()
	c := resolved(t, srv, append(options, "BatchMode=no")...)
	c.IdentityFiles = identities
	return c
}

// startAgent runs a real ssh-agent with these keys and gives its socket.
func startAgent(t *testing.T, files ...string) string {
	t.Helper()
	socket := filepath.Join(env.ShortDir(t), "agent")
	cmd := exec.Command(env.Tool(t, "ssh-agent"), "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n') // it listens
	require.NoError(t, err)
	for _, file := range files {
		add := exec.Command(env.Tool(t, "ssh-add"), "-q", file)
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		said, err := add.CombinedOutput()
		require.NoError(t, err, string(said))
	}
	return socket
}

func TestAuthKeyFiles(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-t", "ed25519"}, {"-t", "ecdsa"}, {"-t", "rsa", "-b", "2048"}, {"-t", "rsa", "-b", "2048", "-m", "PEM"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			key := sshkeys.Keygen(t, dir, strings.Join(args[1:], ""), args...)
			requireLogin(t, authConfig(t, serverFor(t, key+".pub"), []string{key}), nil)
		})
	}
}

func TestAuthRefusedKey(t *testing.T) {
	dir := t.TempDir()
	right, wrong := sshkeys.Keygen(t, dir, "right", "-t", "ed25519"), sshkeys.Keygen(t, dir, "wrong", "-t", "ed25519")
	srv := serverFor(t, right+".pub")
	err := requireNoLogin[*login.AuthError](t, authConfig(t, srv, []string{wrong}), nil)
	require.Equal(t, []string{"publickey"}, err.Methods)
	require.Equal(t, []string{"key " + wrong}, err.Tried)
	require.Contains(t, err.Error(), srv.User+"@127.0.0.1: permission denied (publickey)")
	requireLogin(t, authConfig(t, srv, []string{wrong, right}), nil)
	requireNoLogin[*login.AuthError](t, authConfig(t, srv, []string{right}, "PubkeyAuthentication=no"), nil)
	requireNoLogin[*login.AuthError](t, authConfig(t, srv, []string{right}, "PubkeyAcceptedAlgorithms=rsa-sha2-512"), nil)
}

func TestAuthTooManyKeys(t *testing.T) {
	dir := t.TempDir()
	var keys []string
	for i := range 8 {
		keys = append(keys, sshkeys.Keygen(t, dir, fmt.Sprint("key", i), "-t", "ed25519"))
	}
	srv := serverFor(t, keys[7]+".pub")
	require.Contains(t, requireNoLogin[*login.AuthError](t, authConfig(t, srv, keys), nil).Error(), "Too many authentication failures")
	requireLogin(t, authConfig(t, srv, keys[3:]), nil)
}

// The passphrase is asked for when the server has accepted the public half, not before. A
// wrong one may be corrected; an empty one skips the key.
func TestAuthEncryptedKey(t *testing.T) {
	dir := t.TempDir()
	secret := sshkeys.Keygen(t, dir, "secret", "-t", "ed25519", "-N", "sesame")
	other := sshkeys.Keygen(t, dir, "other", "-t", "ed25519", "-N", "x")
	plain := sshkeys.Keygen(t, dir, "plain", "-t", "ed25519")
	srv := serverFor(t, secret+".pub", plain+".pub")
	prompt := "Enter passphrase for key '" + secret + "': "
	for _, c := range []struct {
		name    string
		keys    []string
		answers []string
		asked   string
		ok      bool
	}{
		{"right", []string{other, secret}, []string{"sesame"}, prompt, true},
		{"second try", []string{secret}, []string{"no", "sesame"}, prompt + "|" + prompt, true},
		{"three wrong", []string{secret}, []string{"a", "b", "c", "sesame"},
			prompt + strings.Repeat("|"+prompt, 2), false},
		{"empty, next key", []string{secret, plain}, []string{""}, prompt, true},
		{"given up", []string{secret, plain}, nil, prompt, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &asker.Script{Answers: c.answers}
			resolved := authConfig(t, srv, c.keys)
			if c.ok {
				requireLogin(t, resolved, p)
			} else {
				requireNoLogin[*login.AuthError](t, resolved, p)
			}
			require.Equal(t, c.asked, p.AllAsked())
		})
	}
	t.Run("BatchMode", func(t *testing.T) {
		resolved := authConfig(t, srv, []string{secret})
		resolved.BatchMode = true
		p := &asker.Script{Answers: []string{"sesame"}}
		err := requireNoLogin[*login.AuthError](t, resolved, p)
		require.ErrorIs(t, err, usertext.ErrNoPrompt)
		require.Empty(t, err.Tried, "it would cost one of the server's MaxAuthTries")
		require.Empty(t, p.AllAsked())
	})
}

// The old format does not show the public half of an encrypted key.
func TestAuthEncryptedPEM(t *testing.T) {
	key := sshkeys.Keygen(t, t.TempDir(), "pem", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "sesame")
	srv := serverFor(t, key+".pub")
	requireLogin(t, authConfig(t, srv, []string{key}), &asker.Script{Answers: []string{"sesame"}})
	require.NoError(t, os.Remove(key+".pub"))
	requireLogin(t, authConfig(t, srv, []string{key}), &asker.Script{Answers: []string{"wrong", "sesame"}})
}

func TestAuthKeyFileOpenToOthers(t *testing.T) {
	key := sshkeys.Keygen(t, t.TempDir(), "open", "-t", "ed25519")
	srv := serverFor(t, key+".pub")
	require.NoError(t, os.Chmod(key, 0o644))
	require.Contains(t, requireNoLogin[*login.AuthError](t, authConfig(t, srv, []string{key}), nil).Hint(), "chmod 600")
}

func TestAuthAgent(t *testing.T) {
	dir := t.TempDir()
	var keys []string
	for _, name := range []string{"a", "b", "c"} {
		keys = append(keys, sshkeys.Keygen(t, dir, name, "-t", "ed25519"))
	}
	rsa := sshkeys.Keygen(t, dir, "rsa", "-t", "rsa", "-b", "2048")
	socket := startAgent(t, append(keys, rsa)...)
	srv := serverFor(t, keys[2]+".pub")
	with := func(identities []string, options ...string) *config.Config {
		c := authConfig(t, srv, identities, options...)
		c.IdentityAgent = socket
		return c
	}
	t.Run("several keys", func(t *testing.T) { requireLogin(t, with(nil, "IdentitiesOnly=no"), nil) })
	t.Run("IdentitiesOnly", func(t *testing.T) {
		err := requireNoLogin[*login.AuthError](t, with([]string{keys[0]}, "IdentitiesOnly=yes"), nil)
		require.Equal(t, []string{"key " + keys[0]}, err.Tried)
	})
	// Only the public half is here: the agent has the other.
	t.Run("public file", func(t *testing.T) {
		requireLogin(t, with([]string{keys[2] + ".pub"}, "IdentitiesOnly=yes"), nil)
	})
	t.Run("order", func(t *testing.T) {
		file := sshkeys.Keygen(t, dir, "file", "-t", "ed25519")
		c := authConfig(t, serverFor(t), []string{file, keys[1]}, "IdentitiesOnly=no")
		c.IdentityAgent = socket
		err := requireNoLogin[*login.AuthError](t, c, nil)
		require.Equal(t, []string{"key " + keys[1], "key a", "key c", "key rsa", "key " + file}, err.Tried)
	})
	t.Run("none", func(t *testing.T) {
		c := with(nil)
		c.IdentityAgent = "none"
		require.Empty(t, requireNoLogin[*login.AuthError](t, c, nil).Tried)
	})
	t.Run("from the environment", func(t *testing.T) {
		t.Setenv("SSH_AUTH_SOCK", socket)
		t.Setenv("GB_TEST_AGENT", socket)
		for _, setting := range []string{"", "SSH_AUTH_SOCK", "$GB_TEST_AGENT"} {
			c := with(nil, "IdentitiesOnly=no")
			c.IdentityAgent = setting
			requireLogin(t, c, nil)
		}
	})
	t.Run("RSA", func(t *testing.T) {
		c := authConfig(t, serverFor(t, rsa+".pub"), []string{rsa + ".pub"})
		c.IdentityAgent = socket
		requireLogin(t, c, nil)
	})
	t.Run("gone", func(t *testing.T) {
		c := with([]string{keys[2]})
		c.IdentityAgent = filepath.Join(dir, "nobody")
		requireLogin(t, c, nil)
	})
}

// A certificate is found beside the key, or by CertificateFile if its key is in a file or
// in the agent.
func TestAuthCertificate(t *testing.T) {
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	ca, key := sshkeys.Keygen(t, dir, "ca", "-t", "ed25519"), sshkeys.Keygen(t, dir, "key", "-t", "rsa", "-b", "2048")
	srv := sshd.Start(t, sshd.Config{Options: []string{"TrustedUserCAKeys " + ca + ".pub"}})
	out, err := exec.Command("ssh-keygen", "-q", "-s", ca, "-I", "test", "-n", srv.User, key+".pub").CombinedOutput()
	require.NoError(t, err, string(out))
	requireLogin(t, authConfig(t, srv, []string{key}), nil)

	elsewhere := filepath.Join(t.TempDir(), "cert")
	require.NoError(t, os.Rename(key+"-cert.pub", elsewhere))
	c := authConfig(t, srv, []string{key})
	requireNoLogin[*login.AuthError](t, c, nil)
	c.CertificateFiles = []string{elsewhere}
	requireLogin(t, c, nil)
	c.IdentityFiles, c.IdentityAgent = nil, startAgent(t, key)
	requireNoLogin[*login.AuthError](t, c, nil) // IdentitiesOnly: the key is not named
	c.IdentitiesOnly = false
	requireLogin(t, c, nil)
}
