package sshfwd

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh/knownhosts"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// A knownHostsCase is a known_hosts file, with which ssh and we must come to the
// same verdict. In the text {ED25519}, {RSA}, {ECDSA} are the server's public keys,
// {CERT_KEY} the one in its certificate, {CA} its authority, {OTHER} and
// {OTHER_CA} strangers, {PORT} the port, and {HASH name} a hashed name.
type knownHostsCase struct {
	name    string
	text    string
	options []string // -o
	// want is ssh's verdict, so that the table can be read: "ok", "unknown",
	// "changed" or "revoked". The test checks it against the real ssh.
	want string
}

var knownHostsCases = []knownHostsCase{
	{name: "known", text: "[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "empty file", text: "", want: "unknown"},
	{name: "another host", text: "elsewhere {ED25519}", want: "unknown"},
	{name: "other key", text: "[127.0.0.1]:{PORT} {OTHER}", want: "changed"},
	{name: "one of two keys", text: "[127.0.0.1]:{PORT} {OTHER}\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "only RSA is known", text: "[127.0.0.1]:{PORT} {RSA}", want: "ok"},
	{name: "only ECDSA is known", text: "[127.0.0.1]:{PORT} {ECDSA}", want: "ok"},
	{name: "RSA known, Ed25519 stranger", text: "[127.0.0.1]:{PORT} {RSA}\n[127.0.0.1]:{PORT} {OTHER}", want: "changed"},
	{name: "name without port", text: "127.0.0.1 {ED25519}", want: "ok"},
	{name: "name without port, other key", text: "127.0.0.1 {OTHER}", want: "unknown"},
	{name: "name without port, RSA only", text: "127.0.0.1 {RSA}", want: "unknown"},
	{name: "other port", text: "[127.0.0.1]:1 {ED25519}", want: "unknown"},
	{name: "other port and changed name", text: "[127.0.0.1]:1 {ED25519}\n127.0.0.1 {OTHER}", want: "unknown"},
	{name: "port key differs, plain fits", text: "[127.0.0.1]:{PORT} {OTHER}\n127.0.0.1 {ED25519}", want: "changed"},
	{name: "list of names", text: "a,b,[127.0.0.1]:{PORT},c {ED25519}", want: "ok"},
	{name: "star", text: "* {ED25519}", want: "ok"},
	{name: "star in the middle", text: "[127.*.1]:{PORT} {ED25519}", want: "ok"},
	{name: "question marks", text: "[127.?.?.1]:{PORT} {ED25519}", want: "ok"},
	{name: "wildcard without port", text: "127.* {ED25519}", want: "ok"},
	{name: "negated", text: "*,![127.0.0.1]:{PORT} {ED25519}", want: "ok"}, // by the plain name
	{name: "negated everywhere", text: "*,!*127.0.0.1* {ED25519}", want: "unknown"},
	{name: "negated first", text: "!*127*,* {ED25519}", want: "unknown"},
	{name: "negated alone", text: "!elsewhere {ED25519}", want: "unknown"},
	{name: "hashed", text: "{HASH [127.0.0.1]:{PORT}} {ED25519}", want: "ok"},
	{name: "hashed, other key", text: "{HASH [127.0.0.1]:{PORT}} {OTHER}", want: "changed"},
	{name: "hashed name without port", text: "{HASH 127.0.0.1} {ED25519}", want: "ok"},
	{name: "bad hash", text: "|1|AAAA|BBBB {ED25519}", want: "unknown"},
	{name: "bad hash before", text: "|1|AAAA|BBBB {OTHER}\n|2|x {OTHER}\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "comments and blanks", text: "# c\n\n   \n\t# d\n  [127.0.0.1]:{PORT}   {ED25519}   a comment", want: "ok"},
	{name: "tabs", text: "\t[127.0.0.1]:{PORT}\t\t{ED25519}", want: "ok"},
	{name: "CRLF", text: "[127.0.0.1]:{PORT} {ED25519}\r\n", want: "ok"},
	{name: "CRLF with comment", text: "[127.0.0.1]:{PORT} {ED25519} x\r\n", want: "ok"},
	{name: "no line end", text: "[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "bad base64 before", text: "[127.0.0.1]:{PORT} ssh-ed25519 AAAA!!!\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "bad base64 only", text: "[127.0.0.1]:{PORT} ssh-ed25519 AAAA!!!", want: "unknown"},
	{name: "truncated", text: "[127.0.0.1]:{PORT}\n[127.0.0.1]:{PORT} ssh-ed25519\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "unknown type", text: "[127.0.0.1]:{PORT} ssh-future AAAA\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "SSH1 line", text: "[127.0.0.1]:{PORT} 1024 35 1234567\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "semicolon", text: "; a comment\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "long line", text: "x " + strings.Repeat("y", 70000) + "\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "type and key differ", text: "[127.0.0.1]:{PORT} ssh-rsa {ED25519_BLOB}", want: "unknown"},
	{name: "short type name", text: "[127.0.0.1]:{PORT} ED25519 {ED25519_BLOB}", want: "unknown"},
	{name: "signature name as type", text: "[127.0.0.1]:{PORT} rsa-sha2-512 {RSA_BLOB}", want: "ok"},
	{name: "revoked", text: "[127.0.0.1]:{PORT} {ED25519}\n@revoked * {ED25519}", want: "revoked"},
	{name: "revoked first", text: "@revoked [127.0.0.1]:{PORT} {ED25519}\n[127.0.0.1]:{PORT} {ED25519}", want: "revoked"},
	{name: "revoked, and another type known", text: "[127.0.0.1]:{PORT} {ED25519}\n[127.0.0.1]:{PORT} {RSA}\n@revoked * {ED25519}", want: "ok"},
	{name: "revoked, and another key of its type known behind it", text: "* {ED25519}\n* {OTHER}\n* {RSA}\n@revoked * {ED25519}", want: "ok"},
	{name: "revoked, and another key of its type known before it", text: "* {OTHER}\n* {ED25519}\n* {RSA}\n@revoked * {ED25519}", want: "revoked"},
	{name: "both types revoked", text: "* {ED25519}\n* {RSA}\n@revoked * {ED25519}\n@revoked * {RSA}", want: "revoked"},
	{name: "revoked for another host", text: "[127.0.0.1]:{PORT} {ED25519}\n@revoked elsewhere {ED25519}", want: "ok"},
	{name: "another key revoked", text: "[127.0.0.1]:{PORT} {ED25519}\n@revoked * {OTHER}", want: "ok"},
	{name: "unknown marker", text: "@frobnicate * {OTHER}\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "two markers", text: "@revoked @revoked * {ED25519}\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "marker and tab", text: "[127.0.0.1]:{PORT} {ED25519}\n@revoked\t* {ED25519}", want: "ok"},
	{name: "marker with capital", text: "@Revoked * {ED25519}\n[127.0.0.1]:{PORT} {ED25519}", want: "ok"},
	{name: "authority's key as a plain host key", text: "@cert-authority * {ED25519}", want: "unknown"},
	{name: "alias", text: "bastion {ED25519}", options: []string{"HostKeyAlias=bastion"}, want: "ok"},
	{name: "alias in capitals", text: "BASTION {ED25519}", options: []string{"HostKeyAlias=Bastion"}, want: "ok"},
	{name: "alias has no port", text: "[bastion]:{PORT} {ED25519}", options: []string{"HostKeyAlias=bastion"}, want: "unknown"},
	{name: "alias hides the name", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"HostKeyAlias=bastion"}, want: "unknown"},
	{name: "alias, other key", text: "bastion {OTHER}", options: []string{"HostKeyAlias=bastion"}, want: "changed"},
	{name: "name in capitals", text: "[LOCALHOST]:{PORT} {ED25519}", options: []string{"HostName=LocalHost"}, want: "ok"},
	{name: "hashed name is lower case", text: "{HASH [localhost]:{PORT}} {ED25519}", options: []string{"HostName=LocalHost"}, want: "ok"},
	{name: "second file", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"UserKnownHostsFile=/nonexistent {FILE}"}, want: "ok"},
	{name: "global file", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"UserKnownHostsFile=none", "GlobalKnownHostsFile={FILE}"}, want: "ok"},
	{name: "missing file", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"UserKnownHostsFile=/nonexistent"}, want: "unknown"},
	{name: "host key algorithms of the user's", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"HostKeyAlgorithms=rsa-sha2-512"}, want: "changed"},
	{name: "host key algorithms in the user's order", text: "[127.0.0.1]:{PORT} {RSA}", options: []string{"HostKeyAlgorithms=ssh-ed25519,rsa-sha2-512"}, want: "changed"},
	{name: "host key algorithms with hat", text: "[127.0.0.1]:{PORT} {RSA}", options: []string{"HostKeyAlgorithms=^ecdsa-sha2-nistp256"}, want: "changed"},
	{name: "host key algorithms with plus", text: "[127.0.0.1]:{PORT} {RSA}", options: []string{"HostKeyAlgorithms=+ssh-rsa"}, want: "ok"},
	{name: "host key algorithms with minus", text: "[127.0.0.1]:{PORT} {RSA}", options: []string{"HostKeyAlgorithms=-ecdsa*"}, want: "ok"},
	{name: "RSA too small for the user", text: "[127.0.0.1]:{PORT} {RSA}", options: []string{"HostKeyAlgorithms=rsa-sha2-512", "RequiredRSASize=4096"}, want: "weak"},
}

var certCases = []knownHostsCase{
	{name: "authority", text: "@cert-authority * {CA}", want: "ok"},
	{name: "authority for the port", text: "@cert-authority [127.0.0.1]:{PORT} {CA}", want: "ok"},
	{name: "authority for the plain name", text: "@cert-authority 127.0.0.1 {CA}", want: "ok"},
	{name: "authority of others", text: "@cert-authority elsewhere {CA}", want: "unknown"},
	{name: "other authority", text: "@cert-authority * {OTHER_CA}", want: "unknown"},
	{name: "other authority, key known", text: "@cert-authority * {OTHER_CA}\n[127.0.0.1]:{PORT} {CERT_KEY}", want: "ok"},
	{name: "other authority, key changed", text: "@cert-authority * {OTHER_CA}\n[127.0.0.1]:{PORT} {OTHER}", want: "changed"},
	{name: "no authority, key known", text: "[127.0.0.1]:{PORT} {CERT_KEY}", want: "ok"},
	{name: "no authority", text: "", want: "unknown"},
	{name: "the authority's line lacks its marker", text: "* {CA}", want: "changed"},
	{name: "authority revoked", text: "@cert-authority * {CA}\n@revoked * {CA}", want: "revoked"},
	{name: "key in the certificate revoked", text: "@cert-authority * {CA}\n@revoked * {CERT_KEY}", want: "revoked"},
	{name: "not a principal", text: "@cert-authority * {CA}", options: []string{"HostKeyAlias=other"}, want: "unknown"},
	{name: "alias is a principal", text: "@cert-authority * {CA}", options: []string{"HostKeyAlias=principal"}, want: "ok"},
	{name: "CA algorithm not allowed", text: "@cert-authority * {CA}", options: []string{"CASignatureAlgorithms=rsa-sha2-512"}, want: "unknown"},
}

// userCertCases have a certificate for a user, by the same authority, which is not valid for
// a host.
var userCertCases = []knownHostsCase{
	{name: "authority", text: "@cert-authority * {CA}", want: "unknown"},
	{name: "authority, key known", text: "@cert-authority * {CA}\n[127.0.0.1]:{PORT} {CERT_KEY}", want: "ok"},
}

// hostKeyServer is an sshd with several host keys, or with a certificate.
type hostKeyServer struct {
	*sshd.Server
	keys map[string]string // placeholder to public key
}

func startHostKeyServer(t *testing.T) hostKeyServer {
	t.Helper()
	dir := env.ShortDir(t)
	rsa := sshkeys.Keygen(t, dir, "rsa", "-t", "rsa", "-b", "2048")
	ecdsa := sshkeys.Keygen(t, dir, "ecdsa", "-t", "ecdsa")
	srv := sshd.Start(t, sshd.Config{Options: []string{"HostKey " + rsa, "HostKey " + ecdsa}})
	return hostKeyServer{srv, map[string]string{
		"ED25519": srv.HostPublicKey, "RSA": sshkeys.PublicLine(t, rsa+".pub"), "ECDSA": sshkeys.PublicLine(t, ecdsa+".pub"),
		"OTHER": sshkeys.PublicLine(t, sshkeys.Keygen(t, dir, "other", "-t", "ed25519")+".pub"),
	}}
}

// startCertServer shows a certificate; kind is ssh-keygen's flag for that of a host,
// or empty for that of a user.
func startCertServer(t *testing.T, kind ...string) hostKeyServer {
	t.Helper()
	dir := env.ShortDir(t)
	ca := sshkeys.Keygen(t, dir, "ca", "-t", "ed25519")
	host := sshkeys.Keygen(t, dir, "host", "-t", "ed25519")
	args := append(kind, "-q", "-s", ca, "-I", "test", "-z", "7", "-n", "127.0.0.1,principal", host+".pub")
	out, err := exec.Command("ssh-keygen", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	srv := sshd.Start(t, sshd.Config{Options: []string{"HostKey " + host, "HostCertificate " + host + "-cert.pub"}})
	return hostKeyServer{srv, map[string]string{
		"CA": sshkeys.PublicLine(t, ca+".pub"), "CERT_KEY": sshkeys.PublicLine(t, host+".pub"),
		"OTHER":    sshkeys.PublicLine(t, sshkeys.Keygen(t, dir, "other", "-t", "ed25519")+".pub"),
		"OTHER_CA": sshkeys.PublicLine(t, sshkeys.Keygen(t, dir, "otherca", "-t", "ed25519")+".pub"),
	}}
}

func (s hostKeyServer) fill(text, file string) string {
	text = strings.ReplaceAll(text, "{PORT}", strconv.Itoa(s.Port))
	text = strings.ReplaceAll(text, "{FILE}", file)
	for name, key := range s.keys {
		_, blob, _ := strings.Cut(key, " ")
		text = strings.NewReplacer("{"+name+"}", key, "{"+name+"_BLOB}", blob).Replace(text)
	}
	for {
		before, rest, found := strings.Cut(text, "{HASH ")
		if !found {
			return text
		}
		name, after, _ := strings.Cut(rest, "}")
		text = before + knownhosts.HashHostname(name) + after
	}
}

func TestKnownHostsVerdictsAreOpenSSHs(t *testing.T) {
	t.Run("keys", func(t *testing.T) { compareVerdicts(t, startHostKeyServer(t), knownHostsCases) })
	t.Run("certificates", func(t *testing.T) { compareVerdicts(t, startCertServer(t, "-h"), certCases) })
	t.Run("certificates of users", func(t *testing.T) { compareVerdicts(t, startCertServer(t), userCertCases) })
}

func compareVerdicts(t *testing.T, srv hostKeyServer, cases []knownHostsCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "known_hosts")
			require.NoError(t, os.WriteFile(file, []byte(srv.fill(c.text, file)), 0o600))
			var options []string
			for _, o := range c.options {
				options = append(options, srv.fill(o, file))
			}
			options = append(options, "UserKnownHostsFile="+file)
			require.Equal(t, c.want, opensshVerdict(t, srv, options), "OpenSSH")
			require.Equal(t, c.want, ourVerdict(t, srv, options), "we")
		})
	}
}

func opensshVerdict(t *testing.T, srv hostKeyServer, options []string) string {
	t.Helper()
	var args []string
	for _, o := range options {
		args = append(args, "-o", o)
	}
	out, err := srv.SSH(append(args, "host", "true")...).CombinedOutput()
	return verdictOf(string(out), err)
}

// verdictOf returns the verdict in ssh's messages.
func verdictOf(text string, err error) string {
	switch {
	case err == nil:
		return "ok"
	case strings.Contains(text, "REVOKED HOST KEY"):
		return "revoked"
	case strings.Contains(text, "IDENTIFICATION HAS CHANGED"):
		return "changed"
	case strings.Contains(text, "host key is known for"):
		return "unknown"
	case strings.Contains(text, "Invalid key length"):
		return "weak"
	}
	return text
}

func ourVerdict(t *testing.T, srv hostKeyServer, options []string) string {
	t.Helper()
	return dialVerdict(t, config.To("host", append([]string{"-F", srv.ConfigFile}, config.OptionFlags(options)...)...))
}

func dialVerdict(t *testing.T, options config.Options) string {
	t.Helper()
	resolved, err := config.Resolve(t.Context(), options)
	require.NoError(t, err)
	client, err := Dial(dialContext(t), resolved, DialOptions{Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		require.NoError(t, client.Close())
		return "ok"
	}
	var refused *hostkey.Error
	if !errors.As(err, &refused) {
		return err.Error()
	}
	require.NotEmpty(t, refused.Hint())
	return map[hostkey.Reason]string{hostkey.Unknown: "unknown", hostkey.Changed: "changed", hostkey.Revoked: "revoked", hostkey.Weak: "weak"}[refused.Reason]
}
