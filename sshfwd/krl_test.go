package sshfwd

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
)

// krlOfID revokes a key id for every authority, for which ssh-keygen has no
// way.
func krlOfID(id string) []byte {
	str := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	section := slices.Concat(str(nil), str(nil), []byte{krlKeyID}, str(str([]byte(id))))
	return slices.Concat([]byte(krlMagic), []byte{0, 0, 0, 1}, make([]byte, 3*8), str(nil), str(nil), []byte{krlCertificates}, str(section))
}

// What is cut short anywhere, or says what is not known, is no list.
func TestBrokenKRL(t *testing.T) {
	whole := krlOfID("test")
	_, err := parseKRL(whole)
	require.NoError(t, err)
	header := len(whole) - len(whole[bytes.LastIndexByte(whole, krlCertificates):])
	for n := len(krlMagic); n < len(whole); n++ {
		if _, err := parseKRL(whole[:n]); err == nil {
			require.Equal(t, header, n, "without its only section it is a list of nothing")
		}
	}
	for _, kind := range []byte{0, 4, 6, 254} {
		bad := slices.Clone(whole)
		bad[header] = kind
		_, err := parseKRL(bad)
		require.Error(t, err)
	}
	bad := slices.Clone(whole)
	bad[11] = 2
	_, err = parseKRL(bad)
	require.ErrorContains(t, err, "version")
}

func FuzzKRL(f *testing.F) {
	f.Add(krlOfID("test"))
	key := newCertKey()
	f.Fuzz(func(t *testing.T, data []byte) {
		if !bytes.HasPrefix(data, []byte(krlMagic)) {
			return
		}
		if k, err := parseKRL(data); err == nil {
			k.revokes(key)
		}
	})
}

// newCertKey is a certificate of which only the fields matter.
func newCertKey() *ssh.Certificate {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		panic(err)
	}
	return &ssh.Certificate{Key: key, SignatureKey: key, Serial: 7, KeyId: "x", Signature: &ssh.Signature{}}
}
