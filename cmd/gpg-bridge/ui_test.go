package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/gpghome"
)

// advised is an error for the user.
type advised struct{ text, hint string }

func (e *advised) Error() string { return e.text }
func (e *advised) Hint() string  { return e.hint }

var (
	errPlain   = errors.New("it failed")
	errAdvised = &advised{"it failed", "do this"}
)

// heard returns a user, and what they see on stderr.
func heard() (*ui, *bytes.Buffer) {
	var stderr bytes.Buffer
	return newUI(strings.NewReader(""), &bytes.Buffer{}, &stderr), &stderr
}

func TestWhatTheUserSees(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*ui)
		want string
	}{
		"message":         {func(u *ui) { u.say("hello", "") }, "gpg-bridge: hello\n"},
		"hint":            {func(u *ui) { u.say("hello", "do this") }, "gpg-bridge: hello\ngpg-bridge: do this\n"},
		"warning":         {func(u *ui) { u.warn(errPlain) }, "gpg-bridge: warning: it failed\n"},
		"warning, hint":   {func(u *ui) { u.warn(fmt.Errorf("because %w", errAdvised)) }, "gpg-bridge: warning: because it failed\ngpg-bridge: do this\n"},
		"several errors":  {func(u *ui) { u.warn(errors.Join(errPlain, errAdvised)) }, "gpg-bridge: warning: it failed; it failed\ngpg-bridge: do this\n"},
		"banner":          {func(u *ui) { u.Notice("be welcome\n") }, "be welcome\n"},
		"raw mode":        {func(u *ui) { u.setRaw(true); u.say("hello", "do this") }, "gpg-bridge: hello\r\ngpg-bridge: do this\r\n"},
		"no raw mode":     {func(u *ui) { u.setRaw(true); u.setRaw(false); u.say("hello", "") }, "gpg-bridge: hello\n"},
		"quiet: error":    {func(u *ui) { u.setQuiet(true); u.say("hello", "") }, "gpg-bridge: hello\n"},
		"quiet: warning":  {func(u *ui) { u.setQuiet(true); u.warn(errAdvised) }, ""},
		"quiet: banner":   {func(u *ui) { u.setQuiet(true); u.Notice("be welcome\n") }, ""},
		"no log":          {func(u *ui) { u.log(0).Debug("hello") }, ""},
		"quiet: progress": {func(u *ui) { u.setQuiet(true); u.tell("hello") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u, stderr := heard()
			test.do(u)
			require.Equal(t, test.want, stderr.String())
		})
	}
}

func TestLogStandsBetweenMessages(t *testing.T) {
	u, stderr := heard()
	u.setRaw(true)
	u.log(1).Debug("hello", "name", "two\nlines")
	require.Regexp(t, `^gpg-bridge: time=\S+ level=DEBUG msg=hello name="two\\nlines"\r\n$`, stderr.String())
}

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		said string
	}{
		"none":             {nil, 0, ""},
		"status":           {&exitError{3, nil}, 3, ""},
		"status 0":         {&exitError{0, nil}, 0, ""},
		"connection":       {&exitError{255, errAdvised}, 255, "gpg-bridge: it failed\ngpg-bridge: do this\n"},
		"wrapped":          {fmt.Errorf("run: %w", &exitError{255, errPlain}), 255, "gpg-bridge: it failed\n"},
		"usage":            {&usageError{"gpg-bridge ssh", errPlain}, 2, "gpg-bridge: it failed\ngpg-bridge: see gpg-bridge ssh --help\n"},
		"anything else":    {errPlain, 1, "gpg-bridge: it failed\n"},
		"with what to do":  {fmt.Errorf("agent: %w", errAdvised), 1, "gpg-bridge: agent: it failed\ngpg-bridge: do this\n"},
		"said while quiet": {&exitError{255, errPlain}, 255, "gpg-bridge: it failed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u, stderr := heard()
			u.setQuiet(strings.Contains(name, "quiet"))
			require.Equal(t, test.code, u.exitCode(test.err))
			require.Equal(t, test.said, stderr.String())
		})
	}
}

// runMain runs the program in this process.
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
		stdout, stderr string // what is in it; "" for nothing at all
	}{
		"nothing":             {nil, 0, "Usage:", ""},
		"help":                {[]string{"help", "ssh"}, 0, "gpg-bridge ssh [flags]", ""},
		"--help":              {[]string{"ssh", "--help"}, 0, "gpg-bridge ssh [flags]", ""},
		"--help behind host":  {[]string{"ssh", "host", "--help"}, 0, "gpg-bridge ssh [flags]", ""},
		"version":             {[]string{"version"}, 0, "gpg-bridge " + version, ""},
		"unknown command":     {[]string{"nonsense"}, 2, "", `unknown command "nonsense"`},
		"unknown flag":        {[]string{"ssh", "-Z", "host"}, 2, "", "see gpg-bridge ssh --help"},
		"unknown flag behind": {[]string{"ssh", "host", "--nonsense"}, 2, "", "see gpg-bridge ssh --help"},
		"no host":             {[]string{"ssh"}, 2, "", "which host?"},
		"only flags":          {[]string{"ssh", "-v"}, 2, "", "which host?"},
		"bad port":            {[]string{"ssh", "-p", "x", "host"}, 2, "", "gpg-bridge ssh --help"},
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
	require.Regexp(t, `^gpg-bridge: cannot connect to 127\.0\.0\.1:\d+: connection refused\ngpg-bridge: check that .*\n$`, stderr)
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
