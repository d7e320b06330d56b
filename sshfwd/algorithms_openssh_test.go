package sshfwd

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/release"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
)

// notInGo are the algorithms of OpenSSH that x/crypto does not have.
func notInGo() []string {
	return []string{
		"sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com", "diffie-hellman-group18-sha512",
		"aes192-cbc", "aes256-cbc",
		"umac-64@openssh.com", "umac-128@openssh.com", "umac-64-etm@openssh.com", "umac-128-etm@openssh.com",
		"hmac-md5", "hmac-md5-96", "hmac-sha1-etm@openssh.com", "hmac-sha1-96-etm@openssh.com",
		"hmac-md5-etm@openssh.com", "hmac-md5-96-etm@openssh.com",
	}
}

// queried is what the installed ssh has of a kind (ssh -Q).
func queried(t *testing.T, kind string) []string {
	t.Helper()
	out, err := exec.Command(env.Tool(t, "ssh"), "-Q", kind).Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// startServerOfAll runs a server that takes whatever this OpenSSH has.
func startServerOfAll(t *testing.T) *sshd.Server {
	t.Helper()
	dir := t.TempDir()
	options := []string{
		"KexAlgorithms " + strings.Join(queried(t, "kex"), ","), "Ciphers " + strings.Join(queried(t, "cipher"), ","),
		"MACs " + strings.Join(queried(t, "mac"), ","), "HostKeyAlgorithms " + strings.Join(queried(t, "HostKeyAlgorithms"), ","),
	}
	ca := sshkeys.Keygen(t, dir, "ca", "-t", "ed25519")
	for _, kind := range []string{"ed25519", "rsa 2048", "ecdsa 256", "ecdsa 384", "ecdsa 521"} {
		words := strings.Fields(kind)
		if len(words) > 1 {
			words = slices.Insert(words, 1, "-b")
		}
		key := sshkeys.Keygen(t, dir, strings.Join(words, ""), append([]string{"-t"}, words...)...)
		out, err := exec.Command("ssh-keygen", "-q", "-h", "-s", ca, "-I", "host", "-n", "127.0.0.1", key+".pub").CombinedOutput()
		require.NoError(t, err, "%s", out)
		options = append(options, "HostKey "+key, "HostCertificate "+key+"-cert.pub")
	}
	return sshd.Start(t, sshd.Config{Options: options})
}

// agreed is what a client has negotiated with a server, or "" if they have nothing in
// common.
type agreed string

const agreedFormat = "kex %s, host key %s, cipher %s, MAC %s"

// sshAgrees is what the installed ssh negotiates; it does not log in.
func sshAgrees(t *testing.T, inside []string, srv *sshd.Server, options []string) agreed {
	t.Helper()
	args := append(slices.Clone(inside), "ssh", "-v", "-F", srv.ConfigFile, "-o", "LogLevel=DEBUG1")
	for _, option := range options {
		args = append(args, "-o", option)
	}
	said, err := exec.Command(args[0], append(args[1:], "host", "true")...).CombinedOutput()
	require.Error(t, err)
	if !bytes.Contains(said, []byte("Permission denied")) {
		require.Contains(t, string(said), "no matching")
		return ""
	}
	find := func(pattern string) []byte {
		m := regexp.MustCompile(`(?m)^debug1: kex: ` + pattern + `\r?$`).FindSubmatch(said)
		require.NotNil(t, m, "%s in %s", pattern, said)
		return m[1]
	}
	mac := string(find(`server->client cipher: \S+ MAC: (\S+) .*`))
	return agreed(fmt.Sprintf(agreedFormat, find(`algorithm: (\S+)`), find(`host key algorithm: (\S+)`),
		find(`server->client cipher: (\S+) .*`), strings.TrimPrefix(mac, "<implicit>")))
}

// weAgree is sshAgrees for a Client.
func weAgree(t *testing.T, srv *sshd.Server, options []string) (agreed, error) {
	t.Helper()
	c, err := config.Resolve(t.Context(), config.To("host", append([]string{"-F", srv.ConfigFile}, config.OptionFlags(options)...)...))
	require.NoError(t, err)
	return clientAgrees(t, c)
}

func clientAgrees(t *testing.T, c *config.Config) (agreed, error) {
	t.Helper()
	var log lines
	client, err := Dial(dialContext(t), c, DialOptions{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err == nil {
		_ = client.Close()
	}
	var denied *login.AuthError
	if m := regexp.MustCompile(`msg=algorithms kex=(\S+) hostkey=(\S+) cipher=\S+ mac=\S+ read_cipher=(\S+) read_mac=(\S+)`).
		FindStringSubmatch(log.String()); m != nil {
		require.ErrorAs(t, err, &denied)
		return agreed(fmt.Sprintf(agreedFormat, m[1], m[2], m[3], strings.Trim(m[4], `"`))), nil
	}
	return "", err
}

// lines is what a log has written.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

// noLogin are the options of a client that only exchanges keys.
func noLogin(options ...string) []string {
	return append(options, "PubkeyAuthentication=no", "PreferredAuthentications=publickey", "UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no")
}

// With the same configuration a Client and ssh negotiate the same with the same server,
// or both nothing, but for what x/crypto does not have.
func TestAlgorithmsAreOpenSSHs(t *testing.T) {
	t.Parallel()
	srv := startServerOfAll(t)
	cases := map[string][]string{
		"the defaults": {"KexAlgorithms=-sntrup*"}, "kex first": {"KexAlgorithms=^diffie-hellman-group16-sha512"},
		"kex in this order": {"KexAlgorithms=ecdh-sha2-nistp384,curve25519-sha256"}, "kex added": {"KexAlgorithms=-sntrup*,curve*,ecdh*"},
		"cipher first": {"Ciphers=^aes256-gcm@openssh.com", "KexAlgorithms=-sntrup*"}, "ciphers without": {"Ciphers=-chacha*", "MACs=-umac*", "KexAlgorithms=-sntrup*"},
		"no MAC needed": {"MACs=umac-64@openssh.com", "KexAlgorithms=-sntrup*"}, "MACs in this order": {"Ciphers=aes256-ctr", "MACs=hmac-sha2-512,hmac-sha2-256", "KexAlgorithms=-sntrup*"},
		"host keys without": {"HostKeyAlgorithms=-*ed25519*", "KexAlgorithms=-sntrup*"}, "host keys in this order": {"HostKeyAlgorithms=rsa-sha2-256,ssh-ed25519", "KexAlgorithms=-sntrup*"},
	}
	for _, of := range []struct{ kind, option, with string }{
		{"kex", "KexAlgorithms", "Compression=no"}, {"cipher", "Ciphers", "MACs=hmac-sha2-256"},
		{"mac", "MACs", "Ciphers=aes128-ctr"}, {"HostKeyAlgorithms", "HostKeyAlgorithms", "Compression=no"},
	} {
		for _, name := range queried(t, of.kind) {
			if slices.Contains(notInGo(), name) || strings.HasPrefix(name, "ssh-dss") || strings.Contains(name, "sk-") { // the server has no such keys
				continue
			}
			options := []string{of.option + "=" + name, of.with}
			if of.kind != "kex" {
				options = append(options, "KexAlgorithms=curve25519-sha256")
			}
			cases[name] = options
		}
	}
	for name, options := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs := sshAgrees(t, nil, srv, noLogin(options...))
			ours, err := weAgree(t, srv, noLogin(options...))
			require.Equal(t, theirs, ours, err)
		})
	}
}

// A server whose only algorithm for a purpose is one that ssh does not take by default, and
// one that we do not have.
func TestAlgorithmsNotInCommon(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		server  []string
		client  []string
		lacking bool
		allowed string // by the client's own list, which is the cause
	}{
		"KexAlgorithms":     {server: []string{"KexAlgorithms diffie-hellman-group14-sha1"}},
		"MACs":              {server: []string{"MACs hmac-sha1-96", "Ciphers aes128-ctr"}},
		"Ciphers":           {server: []string{"Ciphers 3des-cbc"}, client: []string{"Ciphers=+aes128-cbc"}},
		"HostKeyAlgorithms": {server: []string{"HostKeyAlgorithms ssh-rsa"}},
		"only insecure":     {server: []string{"Ciphers aes128-ctr"}, client: []string{"Ciphers=aes128-cbc,3des-cbc"}, allowed: "your -c or Ciphers allows only aes128-cbc, 3des-cbc, and the server has aes128-ctr"},
		"other MACs":        {server: []string{"Ciphers aes128-ctr", "MACs hmac-sha2-256,hmac-sha1-96"}, client: []string{"MACs=hmac-sha2-512"}, allowed: "your -m or MACs allows only hmac-sha2-512, and the server has hmac-sha2-256"},
		"other exchange":    {server: []string{"KexAlgorithms curve25519-sha256"}, client: []string{"KexAlgorithms=ecdh-sha2-nistp256"}, allowed: "your KexAlgorithms allows only ecdh-sha2-nistp256, and the server has curve25519-sha256"},
		"sntrup761":         {server: []string{"KexAlgorithms sntrup761x25519-sha512@openssh.com"}, lacking: true},
		"no MAC":            {server: []string{"Ciphers aes128-ctr"}, client: []string{"MACs=umac-64@openssh.com"}, lacking: true},
		"umac":              {server: []string{"MACs umac-64@openssh.com", "Ciphers aes128-ctr"}, lacking: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "HostKeyAlgorithms" {
				test.server = append(test.server, "HostKey "+sshkeys.Keygen(t, t.TempDir(), "rsa", "-t", "rsa", "-b", "2048"))
			}
			srv := sshd.Start(t, sshd.Config{Options: test.server})
			theirs := sshAgrees(t, nil, srv, noLogin(test.client...))
			ours, err := weAgree(t, srv, noLogin(test.client...))
			require.Empty(t, ours)
			var failed *HandshakeError
			require.ErrorAs(t, err, &failed)
			var none *AlgorithmError
			require.ErrorAs(t, err, &none)
			require.Equal(t, test.lacking, len(none.Lacking) > 0)
			require.Equal(t, test.lacking, theirs != "")
			if test.allowed != "" {
				require.Contains(t, failed.Hint(), test.allowed)
				return
			}
			require.Contains(t, failed.Hint(), "the server should")
			if test.lacking {
				require.Regexp(t, "has no (sntrup761|umac)", failed.Hint())
			}
			require.NotRegexp(t, "sha1|ssh-rsa|cbc|arcfour", strings.ReplaceAll(failed.Hint(), "hmac-sha1", ""), "none that is insecure")
			require.NotContains(t, failed.Error(), "kex-strict")
			if !test.lacking && test.client == nil {
				require.Equal(t, name, none.Option)
			}
		})
	}
}

// What a list leaves is known before there is a connection.
func TestLacking(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		c    config.Config
		want []string
	}{
		{config.Config{}, nil},
		{config.Config{KexAlgorithms: []string{"sntrup761x25519-sha512@openssh.com", "curve25519-sha256@libssh.org"}}, nil},
		{config.Config{KexAlgorithms: []string{"sntrup761x25519-sha512"}, HostKeyAlgorithms: []string{"x"}}, []string{"KexAlgorithms", "HostKeyAlgorithms"}},
		{config.Config{Ciphers: []string{"aes256-cbc"}}, []string{"Ciphers"}},
		{config.Config{MACs: []string{"umac-64@openssh.com"}}, nil},
		{config.Config{MACs: []string{"umac-64@openssh.com"}, Ciphers: []string{"aes128-ctr"}}, []string{"MACs"}},
	} {
		require.Equal(t, test.want, Lacking(&test.c), test.c)
	}
	for option, names := range map[string][]string{"KexAlgorithms": notInGo()[:3], "Ciphers": notInGo()[3:5], "MACs": notInGo()[5:]} {
		for _, name := range names {
			c, err := config.Resolve(t.Context(), config.To("host", "-F", "none", "-o", option+"="+name, "-o", "Ciphers=aes128-ctr"))
			require.NoError(t, err)
			require.Equal(t, []string{option}, Lacking(c), "nothing of ours")
			var refused *config.Error
			require.ErrorAs(t, propose(&ssh.ClientConfig{}, c), &refused)
			require.NotRegexp(t, "group1-|group14-sha1|sha1-96|cbc|arcfour", refused.Hint())
		}
	}
}

// With a newer OpenSSH on both sides the key exchange is post-quantum; with an older server
// it is what both have and x/crypto, too.
func TestAlgorithmsOfANewerOpenSSH(t *testing.T) {
	inside := release.Inside(t, release.Suites()[0])
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec '"+strings.Join(inside, "' '")+"' ssh \"$@\"\n"), 0o755))
	older := sshd.Start(t, sshd.Config{Options: []string{"KexAlgorithms sntrup761x25519-sha512@openssh.com,curve25519-sha256"}})
	newer := sshd.Start(t, sshd.Config{Inside: inside})
	ours, err := weAgree(t, newer, noLogin())
	require.Contains(t, ours, "kex mlkem768x25519-sha256,", "with an ssh here that does not know it: %v", err)
	ours, err = weAgree(t, newer, noLogin("KexAlgorithms=^curve25519-sha256"))
	require.Contains(t, ours, "kex curve25519-sha256,", err)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	theirs := sshAgrees(t, inside, newer, noLogin())
	ours, err = weAgree(t, newer, noLogin())
	require.Equal(t, theirs, ours, err)
	require.Contains(t, ours, "kex mlkem768x25519-sha256,")
	require.Contains(t, sshAgrees(t, inside, older, noLogin()), "kex sntrup761x25519-sha512")
	ours, err = weAgree(t, older, noLogin())
	require.Contains(t, ours, "kex curve25519-sha256,", err)
}
