package login

import (
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/hostkey"
)

// FuzzKeyFile: whatever a key file holds, there is a private key with its
// public half, an encrypted one, a certificate of a user, or an error.
func FuzzKeyFile(f *testing.F) {
	block, err := ssh.MarshalPrivateKey(sshkeys.FixedPrivate(1), "comment")
	require.NoError(f, err)
	f.Add(pem.EncodeToMemory(block))
	block, err = ssh.MarshalPrivateKeyWithPassphrase(sshkeys.FixedPrivate(1), "comment", []byte("x"))
	require.NoError(f, err)
	f.Add(pem.EncodeToMemory(block))
	f.Add([]byte(sshkeys.Authorized(sshkeys.Fixed(f, 1)) + " comment"))
	f.Add([]byte(sshkeys.Authorized(sshkeys.FixedCert(f, 7))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if key, comment := parsePublicKey(data); key == nil {
			require.Empty(t, comment)
		}
		k := &keyFile{path: "f"}
		switch err := k.parse(append([]byte(nil), data...)); {
		case err != nil:
			require.Nil(t, k.private)
		case k.encrypted == nil:
			require.NotNil(t, k.private)
			require.True(t, hostkey.Same(k.public, k.private.PublicKey()))
		default:
			require.Nil(t, k.private)
		}
	})
}
