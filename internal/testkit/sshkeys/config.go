package sshkeys

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// NewFile makes a private key file, and returns its path.
func NewFile(t testing.TB) (path string, signer ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	signer, err = ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return path, signer
}

// WriteConfig writes an ssh_config with a `Host host`, for a server at addr that accepts the
// key, and its known_hosts; it returns the path.
func WriteConfig(t testing.TB, key, addr string, hostKey ssh.PublicKey) string {
	t.Helper()
	name, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	known := filepath.Join(filepath.Dir(key), "known_hosts")
	line := fmt.Sprintf("[%s]:%s %s", name, port, ssh.MarshalAuthorizedKey(hostKey))
	require.NoError(t, os.WriteFile(known, []byte(line), 0o600))
	file := filepath.Join(filepath.Dir(key), "config")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `Host host
  HostName %s
  Port %s
  User tester
  IdentityFile %s
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile %s
  GlobalKnownHostsFile /dev/null
`, name, port, key, known), 0o600))
	return file
}
