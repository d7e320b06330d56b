package e2e

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

// laptopOnly is a home for what needs no host.
func laptopOnly(t *testing.T) *gpghome.Home {
	t.Helper()
	t.Parallel()
	return gpghome.ForTest(t)
}

func TestConnect(t *testing.T) {
	laptop := laptopOnly(t)
	for _, c := range []struct{ name, input, want string }{
		{"a command", "GETINFO version\n", `^OK Pleased to meet you[^\n]*\nD [0-9.]+\nOK\n$`},
		{"nothing", "", `^OK Pleased to meet you[^\n]*\n$`},
		{"restricted", "GETINFO restricted\nGETINFO pid\n", `\nOK\nERR 67109115 Forbidden <GPG Agent>\n$`},
		{"guarded", "GET_PASSPHRASE X X X X\nINPUT FD=4\nEND\n", `\nERR 67109115 [^\n]*\nERR 67109115 [^\n]*\nERR 67108933 [^\n]*\n$`},
		{"bye", "NOP\nBYE\nNOP\n", `\nOK\nOK closing connection\n$`},
		{"half a line", "NOP\nGETINFO ver", `\nOK\n$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := launch(t, laptop, strings.NewReader(c.input), "connect").wait(t)
			require.Regexp(t, c.want, r.stdout)
			require.Empty(t, r.stderr)
			require.Zero(t, r.code)
		})
	}
}

// BYE is the end although there may be more to read.
func TestConnectEndsWithBye(t *testing.T) {
	laptop := laptopOnly(t)
	stdin, keyboard, err := os.Pipe()
	require.NoError(t, err)
	defer keyboard.Close()
	defer stdin.Close()
	p := launch(t, laptop, stdin, "connect")
	p.waitFor(t, &p.stdout, "OK Pleased to meet you")
	_, err = io.WriteString(keyboard, "NOP\n")
	require.NoError(t, err)
	p.waitFor(t, &p.stdout, "\nOK\n")
	_, err = io.WriteString(keyboard, "BYE\n")
	require.NoError(t, err)
	r := p.wait(t)
	require.True(t, strings.HasSuffix(r.stdout, "OK closing connection\n"))
	require.Zero(t, r.code)
}

func TestConnectWithoutAnAgent(t *testing.T) {
	laptop := laptopOnly(t)
	r := launch(t, laptop, strings.NewReader("NOP\n"), "connect", "--agent-socket", "/nowhere/S.none").wait(t)
	require.Equal(t, 1, r.code)
	require.Equal(t, "OK Pleased to meet you\nERR 67108941 No agent running <GPG Agent>\n", r.stdout)
	r.requireTwoLines(t, "no gpg-agent at", "gpgconf --launch gpg-agent")
}

func TestCommandLine(t *testing.T) {
	laptop := laptopOnly(t)
	for _, c := range []struct {
		args   []string
		code   int
		stdout string // a pattern
		stderr string // a part of the first of two lines
	}{
		{args: []string{"version"}, stdout: `^gpg-bridge \d+\.\d+\.\d+[^\n]* go1[^\n]*\n$`},
		{args: nil, stdout: `Usage:`},
		{args: []string{"help"}, stdout: `(?s)Usage:.*connect.*ssh.*version`},
		{args: []string{"--help"}, stdout: `Usage:`},
		{args: []string{"-h"}, stdout: `Usage:`},
		{args: []string{"help", "ssh"}, stdout: `--takeover`},
		{args: []string{"ssh", "--help"}, stdout: `--takeover`},
		{args: []string{"connect", "-h"}, stdout: `--agent-socket`},
		{args: []string{"--frobnicate"}, code: 2, stderr: "--frobnicate"},
		{args: []string{"frobnicate"}, code: 2, stderr: `unknown command "frobnicate"`},
		{args: []string{"help", "frobnicate"}, code: 2, stderr: "frobnicate"},
		{args: []string{"ssh", "--frobnicate", "host"}, code: 255, stderr: "--frobnicate"},
		{args: []string{"connect", "x"}, code: 2, stderr: "accepts 0 arg(s)"},
		{args: []string{"connect", "-Z"}, code: 2, stderr: "-Z"},
		{args: []string{"version", "x"}, code: 2, stderr: "accepts 0 arg(s)"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := launch(t, laptop, nil, c.args...).wait(t)
			require.Equal(t, c.code, r.code, "%s", r.stderr)
			require.Regexp(t, c.stdout, r.stdout)
			if c.code == 0 {
				require.Empty(t, r.stderr)
				return
			}
			require.Empty(t, r.stdout)
			r.requireTwoLines(t, c.stderr, "--help")
		})
	}
}
