package hostkey

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

func mustRead(t *testing.T, file string) []knownHostsLine {
	t.Helper()
	lines, unreadable := readKnownHosts(t.Context(), []string{file})
	require.Empty(t, unreadable)
	return lines
}

func TestMatchPatternList(t *testing.T) {
	for _, c := range []struct {
		name, list string
		want       bool
	}{
		{"a.b", "a.b", true}, {"a.b", "A.B", true}, {"a.b", "a.c", false}, {"a.b", "*", true}, {"a.b", "a.?", true},
		{"a.b", "a?.b", false}, {"a.b", "x,a.b", true}, {"a.b", "*,!a.b", false}, {"a.b", "!a.b,*", false},
		{"a.b", "!c", false}, {"a.b", "", false}, {"a.b", "*.b,", true}, {"aab", "*ab", true}, {"", "*", true}, {"", "?", false},
		{"[h]:22", "[h]:22", true}, {"[h]:22", "h", false}, {"a", strings.Repeat("*", 2000), false},
		{strings.Repeat("a", 60), strings.Repeat("a*", 60) + "b", false}, // in no exponential time
	} {
		require.Equal(t, c.want, matchPatternList(c.name, c.list), "%q in %q", c.name, c.list)
	}
}

// Processes that add hosts concurrently each leave a whole line, and the same line is
// written once.
func TestAppendKnownHostAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "known_hosts")
	same := sshkeys.New(t)
	var wg sync.WaitGroup
	errs := make([]error, 16)
	keys := make([]ssh.PublicKey, 16)
	for i := range 16 {
		keys[i] = sshkeys.New(t)
		wg.Go(func() {
			errs[i] = errors.Join(
				appendKnownHost(t.Context(), file, knownHost{name: "same", key: same}, i%2 == 0),
				appendKnownHost(t.Context(), file, knownHost{name: fmt.Sprint("host", i), key: keys[i]}, false))
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	lines, unreadable := readKnownHosts(t.Context(), []string{file})
	require.Empty(t, unreadable)
	require.Len(t, lines, 17)
	require.Len(t, keysFor(lines, "same"), 1)
	for i := range 16 {
		v, _ := check(keysFor(lines, fmt.Sprint("host", i)), keys[i])
		require.Equal(t, hostKnown, v)
	}
}

func TestAppendKnownHostToAnOpenLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.WriteFile(file, []byte("# no line end"), 0o600))
	require.NoError(t, appendKnownHost(t.Context(), file, knownHost{name: "h", key: sshkeys.New(t)}, false))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# no line end\nh ssh-ed25519 "))
	for _, name := range []string{"a b", "a,b", "*", "!a", "|1|x", "#", "@revoked", "a\nb"} {
		require.Error(t, appendKnownHost(t.Context(), file, knownHost{name: name, key: sshkeys.New(t)}, false), name)
	}
}

// A later key exchange may not bring another key, and asks nothing.
func TestHostKeyPolicyOnRekey(t *testing.T) {
	c := &config.Config{
		Hostname: "h", Port: 22, StrictHostKeyChecking: config.StrictAsk,
		UserKnownHostsFiles: []string{filepath.Join(t.TempDir(), "kh")},
	}
	policy := New(t.Context(), c, &asker.Script{Answers: []string{"yes"}}, nil, env.QuietLog())
	key := sshkeys.New(t)
	require.NoError(t, policy.Check("", env.TCPAddr(22), key))
	require.NoError(t, policy.Check("", env.TCPAddr(22), key))
	var refused *Error
	require.ErrorAs(t, policy.Check("", env.TCPAddr(22), sshkeys.New(t)), &refused)
	require.Equal(t, Changed, refused.Reason)
}

func TestHostKeyOrder(t *testing.T) {
	all := config.DefaultAlgorithms("hostkeyalgorithms")
	rsaLine := func(marker string) []knownHostsLine {
		signer, err := ssh.ParsePrivateKey([]byte(readKey(t, "-t", "rsa", "-b", "2048")))
		require.NoError(t, err)
		l, ok := parseKnownHostsLine(marker + "h " + string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		require.True(t, ok)
		return []knownHostsLine{l}
	}
	c := &config.Config{Hostname: "h", Port: 22}
	require.Equal(t, all, newHostKeys(c, nil).order(all))
	order := newHostKeys(c, rsaLine("")).order(all)
	require.Len(t, order, len(all))
	require.Equal(t, []string{
		"rsa-sha2-512-cert-v01@openssh.com", "rsa-sha2-256-cert-v01@openssh.com", "rsa-sha2-512", "rsa-sha2-256",
	}, order[:4])
	order = newHostKeys(c, rsaLine("@cert-authority ")).order(all)
	require.Len(t, order, len(all))
	require.Equal(t, all[:8], order[:8]) // all the certificates
}

func readKey(t *testing.T, args ...string) string {
	t.Helper()
	data, err := os.ReadFile(sshkeys.Keygen(t, t.TempDir(), "key", args...))
	require.NoError(t, err)
	return string(data)
}
