package hostkey

import (
	"crypto/rand"
	"crypto/rsa"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// These tests ask the policy about a key as a key exchange does, without a server.
// hostkey_openssh_test.go compares the policy with OpenSSH.

// hostKeysOfTest are a host's key and those of others, {KEY}, {OTHER} and so on in
// a known_hosts file; cert is {KEY}'s, signed by {CA}.
type hostKeysOfTest struct {
	key, other ssh.PublicKey
	ca         ssh.Signer
	cert       *ssh.Certificate
}

func newHostKeysOfTest(t *testing.T) hostKeysOfTest {
	t.Helper()
	ca, err := fakesshd.NewSigner()
	require.NoError(t, err)
	k := hostKeysOfTest{key: sshkeys.New(t), other: sshkeys.New(t), ca: ca}
	k.cert = k.certificate(t, func(*ssh.Certificate) {})
	return k
}

func (k hostKeysOfTest) certificate(t *testing.T, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: k.key, CertType: ssh.HostCert, Serial: 7, KeyId: "test",
		ValidPrincipals: []string{"h", "alias"}, ValidBefore: ssh.CertTimeInfinity,
	}
	change(cert)
	require.NoError(t, cert.SignCert(rand.Reader, k.ca))
	return cert
}

func (k hostKeysOfTest) fill(text string) string {
	line := func(key ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) }
	return strings.NewReplacer(
		"{KEY}", line(k.key), "{OTHER}", line(k.other), "{CA}", line(k.ca.PublicKey()), "{CERT}", line(k.cert),
	).Replace(text)
}

// config is for [h]:2222, with a known_hosts file of that text.
func (k hostKeysOfTest) config(t *testing.T, text string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(file, []byte(k.fill(text)), 0o600))
	return &config.Config{Hostname: "h", Port: 2222, StrictHostKeyChecking: config.StrictYes, UserKnownHostsFiles: []string{file}}
}

func checkHostKey(t *testing.T, c *config.Config, p usertext.Asker, remote string, key ssh.PublicKey) error {
	t.Helper()
	return New(t.Context(), c, p, nil, env.QuietLog()).Check("", &net.TCPAddr{IP: net.ParseIP(remote), Port: 2222}, key)
}

func requireRefused(t *testing.T, err error, reason Reason, line int) *Error {
	t.Helper()
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, reason, refused.Reason, "%v", err)
	require.Equal(t, line, refused.Line)
	return refused
}

const hostKeyOK = Reason(-1)

func TestHostKeyVerdicts(t *testing.T) {
	k := newHostKeysOfTest(t)
	for name, c := range map[string]struct {
		text string
		key  ssh.PublicKey
		want Reason
		line int
	}{
		"known":                         {"h {OTHER}\n[h]:2222 {KEY}\n", k.key, hostKeyOK, 0},
		"known behind another":          {"* {OTHER}\n* {KEY}\n", k.key, hostKeyOK, 0},
		"known before another":          {"* {KEY}\n* {OTHER}\n", k.key, hostKeyOK, 0},
		"changed, by the first line":    {"# c\n* {OTHER}\n* {CA}\n", k.key, Changed, 2},
		"known without the port":        {"h {KEY}\n", k.key, hostKeyOK, 0},
		"another without the port":      {"h {OTHER}\n", k.key, Unknown, 0},
		"revoked without the port":      {"@revoked h {KEY}\n", k.key, Revoked, 1},
		"revoked behind the known":      {"* {KEY}\n@revoked * {KEY}\n", k.key, Revoked, 2},
		"another is revoked":            {"@revoked * {OTHER}\n* {KEY}\n", k.key, hostKeyOK, 0},
		"an authority's":                {"@cert-authority * {KEY}\n", k.key, Unknown, 0},
		"certificate":                   {"@cert-authority [h]:2222 {CA}\n", k.cert, hostKeyOK, 0},
		"certificate without the port":  {"@cert-authority h {CA}\n", k.cert, hostKeyOK, 0},
		"certificate's key is known":    {"* {KEY}\n", k.cert, hostKeyOK, 0},
		"no marker for the authority":   {"* {CA}\n", k.cert, Changed, 1},
		"authority of others":           {"@cert-authority x {CA}\n", k.cert, Unknown, 0},
		"authority revoked":             {"@cert-authority * {CA}\n@revoked * {CA}\n", k.cert, Revoked, 2},
		"certificate's key revoked":     {"@cert-authority * {CA}\n@revoked * {KEY}\n", k.cert, Revoked, 2},
		"certificate revoked":           {"@cert-authority * {CA}\n@revoked * {CERT}\n", k.cert, Revoked, 2},
		"another one's is revoked":      {"@cert-authority * {CA}\n@revoked * {OTHER}\n", k.cert, hostKeyOK, 0},
		"revoked, and no authority":     {"@revoked h {CA}\n", k.cert, Revoked, 1},
		"certificate of another's":      {"@cert-authority * {OTHER}\n", k.cert, Unknown, 0},
		"certificate in place of a key": {"* {CERT}\n", k.cert, Changed, 1},
	} {
		err := checkHostKey(t, k.config(t, c.text), nil, "127.0.0.1", c.key)
		if c.want == hostKeyOK {
			require.NoError(t, err, name)
			continue
		}
		refused := requireRefused(t, err, c.want, c.line)
		require.Equal(t, Fingerprint(k.key), refused.Fingerprint, name)
		require.Equal(t, "[h]:2222", refused.Host)
	}
}

// A certificate that is not valid for the host counts as the key in it.
func TestHostKeyCertificateThatDoesNotFit(t *testing.T) {
	k := newHostKeysOfTest(t)
	const authority = "@cert-authority * {CA}\n"
	for name, c := range map[string]struct {
		cert   func(*ssh.Certificate)
		config func(*config.Config)
		why    string // empty: it fits
	}{
		"for a user":          {cert: func(c *ssh.Certificate) { c.CertType = ssh.UserCert }, why: "not a host's"},
		"for other hosts":     {cert: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x"} }, why: "principal"},
		"expired":             {cert: func(c *ssh.Certificate) { c.ValidBefore = 1 }, why: "expired"},
		"for an alias":        {config: func(c *config.Config) { c.HostKeyAlias = "alias" }},
		"not for the alias":   {config: func(c *config.Config) { c.HostKeyAlias = "x" }, why: "principal"},
		"algorithm allowed":   {config: func(c *config.Config) { c.CASignatureAlgorithms = []string{"x", ssh.KeyAlgoED25519} }},
		"algorithm forbidden": {config: func(c *config.Config) { c.CASignatureAlgorithms = []string{"x"} }, why: "CASignatureAlgorithms"},
	} {
		cert := k.cert
		if c.cert != nil {
			cert = k.certificate(t, c.cert)
		}
		check := func(text string) error {
			resolved := k.config(t, text)
			if c.config != nil {
				c.config(resolved)
			}
			return checkHostKey(t, resolved, nil, "127.0.0.1", cert)
		}
		require.NoError(t, check(authority+"* {KEY}\n"), name)
		if err := check(authority); c.why == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, requireRefused(t, err, Unknown, 0).Err, c.why, name)
			requireRefused(t, check(authority+"* {OTHER}\n"), Changed, 2)
			requireRefused(t, check(authority+"@revoked * {KEY}\n"), Revoked, 2)
		}
	}
}

func TestHostKeyOfAnAlias(t *testing.T) {
	k := newHostKeysOfTest(t)
	for text, known := range map[string]bool{"Alias {KEY}\n": true, "h {KEY}\n": false, "[alias]:2222 {KEY}\n": false} {
		c := k.config(t, text)
		c.HostKeyAlias = "alias"
		require.Equal(t, known, checkHostKey(t, c, nil, "127.0.0.1", k.key) == nil, text)
	}
}

// RequiredRSASize is the smallest accepted size of a key, also of one in a certificate.
func TestHostKeySize(t *testing.T) {
	k := newHostKeysOfTest(t)
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	k.key, err = ssh.NewPublicKey(private.Public())
	require.NoError(t, err)
	for size, ok := range map[int]bool{0: true, 1024: true, 1025: false} {
		for _, key := range []ssh.PublicKey{k.key, k.certificate(t, func(*ssh.Certificate) {})} {
			c := k.config(t, "* {KEY}\n@cert-authority * {CA}\n")
			c.RequiredRSASize = size
			if err := checkHostKey(t, c, nil, "127.0.0.1", key); ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, requireRefused(t, err, Weak, 0).Err, "1024 bits")
			}
		}
	}
}

func TestHostKeyTypeNames(t *testing.T) {
	for algorithm, want := range map[string]string{
		ssh.KeyAlgoED25519: "ED25519", ssh.KeyAlgoRSA: "RSA", ssh.KeyAlgoECDSA256: "ECDSA", ssh.KeyAlgoECDSA384: "ECDSA",
		ssh.KeyAlgoECDSA521: "ECDSA", ssh.KeyAlgoSKED25519: "ED25519-SK", ssh.KeyAlgoSKECDSA256: "ECDSA-SK",
		ssh.InsecureKeyAlgoDSA: "DSA", "new\n": `new\x0a`,
	} {
		require.Equal(t, want, keyTypeName(typedKey{name: algorithm}))
	}
}

type typedKey struct {
	ssh.PublicKey
	name string
}

func (k typedKey) Type() string { return k.name }

// NoHostAuthenticationForLocalhost is for loopback, under its own name.
func TestHostKeyOfThisHost(t *testing.T) {
	k := newHostKeysOfTest(t)
	for name, c := range map[string]struct {
		remote string
		with   func(*config.Config)
		ok     bool
	}{
		"loopback":        {"127.0.0.2", func(*config.Config) {}, true},
		"IPv6":            {"::1", func(*config.Config) {}, true},
		"off":             {"127.0.0.1", func(c *config.Config) { c.NoHostAuthenticationForLocalhost = false }, false},
		"not loopback":    {"192.0.2.1", func(*config.Config) {}, false},
		"alias":           {"127.0.0.1", func(c *config.Config) { c.HostKeyAlias = "x" }, false},
		"through a proxy": {"127.0.0.1", func(c *config.Config) { c.ProxyCommand = "x" }, false},
		"through a host":  {"127.0.0.1", func(c *config.Config) { c.ProxyJump = "x" }, false},
	} {
		resolved := k.config(t, "* {OTHER}\n")
		resolved.NoHostAuthenticationForLocalhost = true
		c.with(resolved)
		require.Equal(t, c.ok, checkHostKey(t, resolved, nil, c.remote, k.key) == nil, name)
	}
	policy := New(t.Context(), &config.Config{NoHostAuthenticationForLocalhost: true, Hostname: "h"}, nil, nil, env.QuietLog())
	require.Error(t, policy.Check("", &net.UnixAddr{}, k.key))
}

// An accepted key is judged once: later key exchanges must bring the same one. A refused
// key stays refused.
func TestHostKeyStays(t *testing.T) {
	k := newHostKeysOfTest(t)
	policy := New(t.Context(), k.config(t, "* {KEY}\n"), nil, nil, env.QuietLog())
	require.Error(t, policy.Check("", env.TCPAddr(1), k.other))
	require.NoError(t, policy.Check("", env.TCPAddr(1), k.key))
	require.NoError(t, policy.Check("", env.TCPAddr(1), k.key))
	requireRefused(t, policy.Check("", env.TCPAddr(1), k.other), Changed, 0)
	require.NoError(t, policy.Check("", env.TCPAddr(1), k.key))
}
