//go:build unix

package hostkey

import (
	"bytes"
	"encoding/base64"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// echo is a KnownHostsCommand that prints the line for that invocation.
func echo(k hostKeysOfTest, invocation, line string) string {
	return `/bin/sh -c "if test %I = ` + invocation + `; then echo '` + k.fill(line) + `'; fi"`
}

func TestHostKeyByCommand(t *testing.T) {
	k := newHostKeysOfTest(t)
	blob := base64.StdEncoding.EncodeToString(k.key.Marshal())
	for name, c := range map[string]struct {
		text, command string
		want          Reason
		line          int
	}{
		"known":             {"", echo(k, "HOSTNAME", "[h]:2222 {KEY}"), hostKeyOK, 0},
		"known by two":      {"* {OTHER}\n", echo(k, "HOSTNAME", "[h]:2222 {KEY}"), hostKeyOK, 0},
		"changed":           {"", echo(k, "HOSTNAME", "[h]:2222 {OTHER}"), Changed, 1},
		"revoked":           {"* {KEY}\n", echo(k, "HOSTNAME", "@revoked * {KEY}"), Revoked, 1},
		"without the port":  {"", echo(k, "HOSTNAME", "h {KEY}"), Unknown, 0},
		"to order":          {"", echo(k, "ORDER", "* {KEY}"), Unknown, 0},
		"says nothing":      {"* {KEY}\n", "/bin/sh -c :", hostKeyOK, 0},
		"not there":         {"* {KEY}\n", "/nonexistent/program x", hostKeyOK, 0},
		"not absolute":      {"", "echo * " + k.fill("{KEY}"), Unknown, 0},
		"only blanks":       {"* {KEY}\n", "  ", hostKeyOK, 0},
		"tokens of the key": {"", `/bin/sh -c "test %H = [h]:2222 && test %t = ssh-ed25519 && test %f = ` + Fingerprint(k.key) + ` && echo '*' ssh-ed25519 %K"`, hostKeyOK, 0},
		"other tokens":      {"", `/bin/sh -c "test %h = h && test %p = 2222 && echo '*' ssh-ed25519 ` + blob + `"`, hostKeyOK, 0},
	} {
		resolved := k.config(t, c.text)
		resolved.KnownHostsCommand = c.command
		err := checkHostKey(t, resolved, nil, "127.0.0.1", k.key)
		if c.want == hostKeyOK {
			require.NoError(t, err, name)
			continue
		}
		refused := requireRefused(t, err, c.want, c.line)
		require.Equal(t, c.line > 0, refused.File == knownHostsCommandTag, name)
	}
}

// A command that cannot be understood or run to its end leaves every key unproven.
func TestHostKeyCommandFails(t *testing.T) {
	k := newHostKeysOfTest(t)
	for _, command := range []string{
		`/bin/sh "`, "/bin/false", "/etc/passwd", "/bin/echo %?", `/bin/sh -c "kill -9 $$"`,
	} {
		resolved := k.config(t, "* {KEY}\n")
		resolved.KnownHostsCommand = command
		policy := New(t.Context(), resolved, nil, nil, env.QuietLog())
		var bad *config.Error
		require.ErrorAs(t, policy.Check("", env.TCPAddr(1), k.key), &bad, command)
		require.NotEmpty(t, bad.Hint())
		_, err := policy.Order([]string{ssh.KeyAlgoED25519})
		require.ErrorAs(t, err, &bad, command)
	}
}

// The algorithms are ordered by what the command prints before the key is known.
func TestHostKeyCommandOrders(t *testing.T) {
	k := newHostKeysOfTest(t)
	all := []string{ssh.KeyAlgoRSA, ssh.KeyAlgoED25519}
	for command, first := range map[string]string{
		"": ssh.KeyAlgoRSA,
		`/bin/sh -c "test %I-%H-%t-%f-%K = ORDER-h-NONE-NONE-NONE && echo h '` + k.fill("{KEY}") + `'"`: ssh.KeyAlgoED25519,
		echo(k, "HOSTNAME", "* {KEY}"):     ssh.KeyAlgoRSA,
		echo(k, "ORDER", "[h]:2222 {KEY}"): ssh.KeyAlgoRSA,
	} {
		resolved := k.config(t, "")
		resolved.Hostname, resolved.KnownHostsCommand = "H", command
		order, err := New(t.Context(), resolved, nil, nil, env.QuietLog()).Order(all)
		require.NoError(t, err)
		require.Equal(t, first, order[0], command)
		require.ElementsMatch(t, all, order)
	}
}

// The output is bounded; one of exactly that size is taken.
func TestHostKeyCommandIsBounded(t *testing.T) {
	out := &boundedBuffer{max: 10}
	for _, part := range []string{"12345", "67890", ""} {
		n, err := out.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	_, err := out.Write([]byte("x"))
	require.Error(t, err)
	require.Equal(t, "1234567890", out.held.String())

	k := newHostKeysOfTest(t)
	resolved := k.config(t, "* {KEY}\n")
	for size, ok := range map[string]bool{"15": true, "17": false} { // MiB; the bound is 16
		resolved.KnownHostsCommand = "/usr/bin/head -c " + size + "M /dev/zero"
		require.Equal(t, ok, checkHostKey(t, resolved, nil, "127.0.0.1", k.key) == nil, size)
	}
}

// What the command writes to stderr reaches the user, and is not taken for known_hosts.
func TestHostKeyCommandComplains(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "")
	var stderr bytes.Buffer
	resolved.KnownHostsCommand = `/bin/sh -c "echo '* ` + k.fill("{KEY}") + `' >&2"`
	requireRefused(t, New(t.Context(), resolved, nil, &stderr, env.QuietLog()).Check("", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2222}, k.key), Unknown, 0)
	require.True(t, strings.HasPrefix(stderr.String(), "* ssh-ed25519"))
}
