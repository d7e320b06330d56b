package sshkeys

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// FixedPrivate returns a private key that is the same in every process, so that what a fuzz
// target has found with it is found again.
func FixedPrivate(number byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize))
}

// FixedCert returns key 1 as a host certificate with ID "x", signed by key 2.
func FixedCert(f *testing.F, serial uint64) *ssh.Certificate {
	f.Helper()
	authority, err := ssh.NewSignerFromKey(FixedPrivate(2))
	require.NoError(f, err)
	cert := &ssh.Certificate{
		Nonce: make([]byte, 32), Key: Fixed(f, 1), Serial: serial, CertType: ssh.HostCert, KeyId: "x",
		ValidPrincipals: []string{"host"}, ValidBefore: ssh.CertTimeInfinity,
	}
	require.NoError(f, cert.SignCert(bytes.NewReader(make([]byte, 64)), authority))
	return cert
}

// Fixed returns a key that is the same in every process.
func Fixed(f *testing.F, number byte) ssh.PublicKey {
	f.Helper()
	key, err := ssh.NewPublicKey(FixedPrivate(number).Public())
	require.NoError(f, err)
	return key
}

// Authorized returns a key as in authorized_keys, without a comment.
func Authorized(key ssh.PublicKey) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}
