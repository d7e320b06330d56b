//go:build unix

package login

import (
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// securityKeyHandle writes a handle as ssh-keygen -t ed25519-sk does (PROTOCOL.key and PROTOCOL.u2f).
func securityKeyHandle(t *testing.T, path string) ssh.PublicKey {
	t.Helper()
	blob := ssh.Marshal(struct {
		Type, Key, Application string
	}{ssh.KeyAlgoSKED25519, string(make([]byte, 32)), "ssh:"})
	head := struct {
		Cipher, KDF, KDFOptions string
		Keys                    uint32
		Public, Private         []byte
	}{"none", "none", "", 1, blob, make([]byte, 64)}
	data := append([]byte("openssh-key-v1\x00"), ssh.Marshal(head)...)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: data}), 0o600))
	public, err := ssh.ParsePublicKey(blob)
	require.NoError(t, err)
	return public
}

func TestForeignKeys(t *testing.T) {
	dir := env.ShortDir(t)
	own, _ := sshkeys.NewFile(t)
	handle := filepath.Join(dir, "id_ed25519_sk")
	securityKeyHandle(t, handle)
	foreign, signer := sshkeys.NewFile(t)
	plain, err := os.ReadFile(foreign)
	require.NoError(t, err)
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-q", "-p", "-N", "secret", "-a", "1", "-Z", "chacha20-poly1305@openssh.com", "-f", foreign).CombinedOutput()
	require.NoError(t, err, "%s", out)
	public := filepath.Join(dir, "public") // stands for a key of the agent's
	require.NoError(t, os.WriteFile(public, ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))

	keyring := agent.NewKeyring()
	socket := filepath.Join(dir, "agent")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = agent.ServeAgent(keyring, conn)
			_ = conn.Close()
		}
	}()
	defer func() { _ = listener.Close(); <-served }()

	c := &config.Config{
		PubkeyAuthentication: true, IdentityAgent: socket,
		IdentityFiles: []string{own, handle, foreign, public, filepath.Join(dir, "missing")},
	}
	require.Equal(t, []string{handle, foreign}, ForeignKeys(t.Context(), c))
	key, err := ssh.ParseRawPrivateKey(plain)
	require.NoError(t, err)
	require.NoError(t, keyring.Add(agent.AddedKey{PrivateKey: key}))
	require.Equal(t, []string{handle}, ForeignKeys(t.Context(), c), "the agent has the other")
	c.PubkeyAuthentication = false
	require.Empty(t, ForeignKeys(t.Context(), c))
}
