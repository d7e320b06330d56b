package sshkeys

import (
	"crypto/ed25519"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
)

// PublicLine returns the type and the key of a public key file, without the comment.
func PublicLine(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	fields := strings.Fields(string(data))
	return fields[0] + " " + fields[1]
}

// Keygen makes a key with the real ssh-keygen and returns its path. It encrypts with one round
// of bcrypt: with ssh-keygen's 16, the race detector reads a key for a second.
func Keygen(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	args = append([]string{"-q", "-a", "1", "-N", "", "-C", name, "-f", file}, args...)
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// Parse reads the key of a line like that of PublicLine.
func Parse(t *testing.T, line string) ssh.PublicKey {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	require.NoError(t, err)
	return key
}

// New returns a new ed25519 key.
func New(t *testing.T) ssh.PublicKey {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	key, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	return key
}
