package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

func runMain(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Main(context.Background(), args, strings.NewReader(stdin), &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestCommandLines(t *testing.T) {
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string // a part of it; "" if it must be empty
	}{
		"nothing":             {nil, 0, "Usage:", ""},
		"help":                {[]string{"help", "ssh"}, 0, "gpg-bridge ssh [flags]", ""},
		"--help":              {[]string{"ssh", "--help"}, 0, "gpg-bridge ssh [flags]", ""},
		"--help behind host":  {[]string{"ssh", "host", "--help"}, 0, "gpg-bridge ssh [flags]", ""},
		"version":             {[]string{"version"}, 0, "gpg-bridge " + version, ""},
		"unknown command":     {[]string{"nonsense"}, 2, "", `unknown command "nonsense"`},
		"unknown flag":        {[]string{"ssh", "-j", "host"}, 255, "", "unknown option -- j\nusage: gpg-bridge ssh ["},
		"unknown long flag":   {[]string{"ssh", "--nonsense", "host"}, 255, "", "see gpg-bridge ssh --help"},
		"unknown flag behind": {[]string{"ssh", "host", "--nonsense"}, 255, "", "see gpg-bridge ssh --help"},
		"of another command":  {[]string{"up", "-Z", "host"}, 2, "", "see gpg-bridge up --help"},
		"no value":            {[]string{"ssh", "-p"}, 255, "", "option requires an argument -- p\nusage: gpg-bridge ssh ["},
		"no host":             {[]string{"ssh"}, 255, "", "usage: gpg-bridge ssh ["},
		"only flags":          {[]string{"ssh", "-v"}, 255, "", "usage: gpg-bridge ssh ["},
		"bad port":            {[]string{"ssh", "-p", "x", "host"}, 255, "", "Bad port 'x'"},
		"too many arguments":  {[]string{"connect", "x"}, 2, "", "see gpg-bridge connect --help"},
		"a bad host":          {[]string{"ssh", "a b"}, 255, "", "not a destination"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runMain(t, "", test.args...)
			require.Equal(t, test.code, code, stderr)
			requireHas(t, test.stdout, stdout)
			requireHas(t, test.stderr, stderr)
		})
	}
}

// What only the user's own ssh can do is refused where there is none.
func TestNoSSHToHandOnTo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, stdout, stderr := runMain(t, "", "ssh", "-W", "a:1", "host")
	require.Equal(t, 255, code)
	require.Empty(t, stdout)
	require.Equal(t, "gpg-bridge: there is no ssh, which would have to do this\ngpg-bridge: install OpenSSH's client\n", stderr)
}

func requireHas(t *testing.T, part, text string) {
	t.Helper()
	require.Contains(t, text, part)
	if part == "" {
		require.Empty(t, text)
	}
}

func TestRefusedConnectionIs255(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	code, stdout, stderr := runMain(t, "", "ssh", "-F", "none", "-p", port,
		"--keys", "none", "--agent-socket", "/nonexistent/S", "127.0.0.1", "true")
	require.Equal(t, 255, code)
	require.Empty(t, stdout)
	require.Regexp(t, `^ssh: connect to host 127\.0\.0\.1 port \d+: Connection refused\ngpg-bridge: check that .*\n$`, stderr)
}

func TestConnect(t *testing.T) {
	home := gpghome.ForTest(t)
	t.Setenv("GNUPGHOME", home.Dir())
	code, stdout, stderr := runMain(t, "GETINFO version\nKILLAGENT\nGETINFO restricted\nBYE\n", "connect")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Regexp(t, `^OK Pleased to meet you.*\nD \d.*\nOK\nERR 67109115 .*\nOK\nOK closing connection\n$`, stdout)

	code, stdout, stderr = runMain(t, "NOP\n", "connect", "--agent-socket", "/nonexistent/S.gpg-agent")
	require.Equal(t, 1, code)
	require.Equal(t, "OK Pleased to meet you\nERR 67108941 No agent running <GPG Agent>\n", stdout)
	require.Contains(t, stderr, "no gpg-agent at")
	require.Contains(t, stderr, "gpgconf --launch gpg-agent")
}
