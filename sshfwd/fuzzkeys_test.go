package sshfwd

import (
	"bytes"
	"crypto/ed25519"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// The keys of the fuzz targets are the same in every process: what was found
// with them must be found again.

func fuzzPrivate(number byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{number}, ed25519.SeedSize))
}

// fuzzCert is key 1 as a host certificate with id "x", by key 2.
func fuzzCert(f *testing.F, serial uint64) *ssh.Certificate {
	f.Helper()
	authority, err := ssh.NewSignerFromKey(fuzzPrivate(2))
	require.NoError(f, err)
	cert := &ssh.Certificate{
		Nonce: make([]byte, 32), Key: fuzzKey(f, 1), Serial: serial, CertType: ssh.HostCert, KeyId: "x",
		ValidPrincipals: []string{"host"}, ValidBefore: ssh.CertTimeInfinity,
	}
	require.NoError(f, cert.SignCert(bytes.NewReader(make([]byte, 64)), authority))
	return cert
}
