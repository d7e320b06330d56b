package hostkey

import (
	"bytes"
	"crypto/rsa"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
)

// Plain is the key in a certificate; any other key is its own.
func Plain(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// Fingerprint is the fingerprint of a key, or of the key in a certificate: "SHA256:…".
func Fingerprint(key ssh.PublicKey) string { return ssh.FingerprintSHA256(Plain(key)) }

// fingerprint is Fingerprint with FingerprintHash, which is "SHA256" or "MD5": "MD5:43:51…".
func fingerprint(key ssh.PublicKey, hash string) string {
	if hash == "MD5" {
		return "MD5:" + ssh.FingerprintLegacyMD5(Plain(key))
	}
	return Fingerprint(key)
}

// RSASize is the size in bits of an RSA key, or of the one in a certificate. ok is false for
// keys of other types.
func RSASize(key ssh.PublicKey) (bits int, ok bool) {
	crypto, ok := Plain(key).(ssh.CryptoPublicKey)
	if !ok {
		return 0, false
	}
	public, ok := crypto.CryptoPublicKey().(*rsa.PublicKey)
	if !ok {
		return 0, false
	}
	return public.N.BitLen(), true
}

// keyTypeName is ssh's name for the type of a key (sshkey_type in sshkey.c).
func keyTypeName(key ssh.PublicKey) string {
	switch t := Plain(key).Type(); t {
	case ssh.KeyAlgoED25519:
		return "ED25519"
	case ssh.KeyAlgoRSA:
		return "RSA"
	case ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return "ECDSA"
	case ssh.KeyAlgoSKED25519:
		return "ED25519-SK"
	case ssh.KeyAlgoSKECDSA256:
		return "ECDSA-SK"
	case ssh.InsecureKeyAlgoDSA:
		return "DSA"
	default:
		return usertext.Line(t)
	}
}

// Same reports whether two keys are the same; a certificate is not the same as its key.
func Same(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
