package hostkey

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// The algorithms for which a key or an authority is known come first; otherwise the order
// is kept, and none is lost.
func TestHostKeyOrderOfWhatIsKnown(t *testing.T) {
	const edCert, rsaCert = "ssh-ed25519-cert-v01@openssh.com", "ssh-rsa-cert-v01@openssh.com"
	const ed, rsa, ec = ssh.KeyAlgoED25519, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoECDSA256
	k := newHostKeysOfTest(t)
	for text, c := range map[string]struct{ all, want []string }{
		"":                                  {[]string{rsa, ed}, []string{rsa, ed}},
		"h {KEY}\n":                         {[]string{rsa, ed, ec}, []string{rsa, ed, ec}}, // without its port
		"[h]:2222 {KEY}\n":                  {[]string{rsa, edCert, ec, ed}, []string{edCert, ed, rsa, ec}},
		"* {KEY}\n@revoked * {KEY}\n":       {[]string{rsa, ed, ec}, []string{rsa, ed, ec}},
		"* {KEY}\n@revoked * {OTHER}\n":     {[]string{rsa, ed, ec}, []string{ed, rsa, ec}},
		"@cert-authority * {CA}\n":          {[]string{rsa, ed, rsaCert, edCert}, []string{rsaCert, edCert, rsa, ed}},
		"@revoked * {CA}\n":                 {[]string{rsa, ed, rsaCert, edCert}, []string{rsa, ed, rsaCert, edCert}},
		"* {KEY}\n@cert-authority * {CA}\n": {[]string{ed, rsa, rsaCert}, []string{ed, rsa, rsaCert}}, // the first is known
	} {
		lines := parseKnownHosts([]byte(k.fill(text)), "f")
		require.Equal(t, c.want, newHostKeys(&config.Config{Hostname: "H", Port: 2222}, lines).order(c.all), text)
	}
	require.Empty(t, newHostKeys(&config.Config{Hostname: "h"}, nil).order(nil))
}

// The keys of a command are added to a copy, not to what is known already.
func TestHostKeysWithMore(t *testing.T) {
	k := newHostKeysOfTest(t)
	known := newHostKeys(&config.Config{Hostname: "h", Port: 22}, parseKnownHosts([]byte(k.fill("h {OTHER}\n")), "f"))
	more := known.with([]knownKey{{key: k.key}})
	v, _, _ := more.judge(k.key)
	require.Equal(t, hostKnown, v)
	v, line, _ := known.judge(k.key)
	require.Equal(t, hostChanged, v)
	require.Equal(t, 1, line.number)
	require.Same(t, known, known.with(nil))
	require.Nil(t, known.withoutPort, "the port is the usual one: there is no other name")
}
