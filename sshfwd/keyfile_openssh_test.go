package sshfwd

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/login"
)

// A key that cannot be decrypted here is named, with the reason and with advice, and nobody
// is asked for its passphrase. The advice helps.
func TestEncryptionThatCannotBeUndone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"aes256-gcm": {[]string{"-t", "ed25519", "-Z", "aes256-gcm@openssh.com"}, `cipher "aes256-gcm@openssh.com"`},
		"chacha20":   {[]string{"-t", "ed25519", "-Z", "chacha20-poly1305@openssh.com"}, `cipher "chacha20-poly1305@openssh.com"`},
		"PKCS#8":     {[]string{"-t", "rsa", "-b", "2048", "-m", "PKCS8"}, "PKCS#8 key with a passphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := sshkeys.Keygen(t, t.TempDir(), "key", append(test.args, "-N", "sesame")...)
			srv := serverFor(t, key+".pub")
			c := authConfig(t, srv, []string{key})
			for range 2 {
				user := &asker.Script{Answers: []string{"sesame"}}
				err := requireNoLogin[*login.AuthError](t, c, user)
				require.Empty(t, user.AllAsked())
				require.Contains(t, err.Hint(), test.says)
				require.Contains(t, err.Hint(), "ssh-keygen -p -f "+key)
				require.NoError(t, os.RemoveAll(key+".pub"))
			}
			out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-p", "-P", "sesame", "-N", "sesame", "-f", key).CombinedOutput()
			require.NoError(t, err, "%s", out)
			requireLogin(t, c, &asker.Script{Answers: []string{"sesame"}})
		})
	}
}

// The agent may have a key whose file cannot be decrypted here.
func TestEncryptionThatTheAgentHasUndone(t *testing.T) {
	t.Parallel()
	key := sshkeys.Keygen(t, t.TempDir(), "key", "-t", "ed25519")
	socket := startAgent(t, key)
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-p", "-N", "sesame", "-Z", "aes256-gcm@openssh.com", "-f", key).CombinedOutput()
	require.NoError(t, err, "%s", out)
	srv := serverFor(t, key+".pub")
	require.NoError(t, os.Remove(key+".pub"))
	user := &asker.Script{}
	requireLogin(t, authConfig(t, srv, []string{key}, "IdentityAgent="+socket), user)
	require.Empty(t, user.AllAsked())
}

// What is wrong with a key's file is also reported in BatchMode, if another key's
// passphrase could not be asked for.
func TestOpenKeyFileInBatchMode(t *testing.T) {
	t.Parallel()
	srv := sshd.Start(t, sshd.Config{})
	c := resolved(t, srv, "BatchMode=yes")
	require.NoError(t, os.Chmod(c.IdentityFiles[0], 0o644))
	err0 := requireNoLogin[*login.AuthError](t, c, nil)
	require.Contains(t, err0.Hint(), "permissions 0644")
	c.IdentityFiles = append(c.IdentityFiles, sshkeys.Keygen(t, t.TempDir(), "locked", "-t", "ed25519", "-N", "sesame"))
	err := requireNoLogin[*login.AuthError](t, c, nil)
	require.ErrorIs(t, err, usertext.ErrNoPrompt)
	require.Contains(t, err.Hint(), "permissions 0644")
	require.Contains(t, err.Hint(), "chmod 600")
	require.Contains(t, err.Hint(), "BatchMode")
}
