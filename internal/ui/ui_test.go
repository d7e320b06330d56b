package ui

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/usertext"
)

// advised is an error for the user.
type advised struct{ text, hint string }

func (e *advised) Error() string { return e.text }
func (e *advised) Hint() string  { return e.hint }

var (
	errPlain   = errors.New("it failed")
	errAdvised = &advised{"it failed", "do this"}
)

// heard returns a UI, and what its user sees on stderr.
func heard() (*UI, *bytes.Buffer) {
	var stderr bytes.Buffer
	return New(strings.NewReader(""), &bytes.Buffer{}, &stderr), &stderr
}

func TestWhatTheUserSees(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*UI)
		want string
	}{
		"message":         {func(u *UI) { u.Say("hello", "") }, "gpg-bridge: hello\n"},
		"hint":            {func(u *UI) { u.Say("hello", "do this") }, "gpg-bridge: hello\ngpg-bridge: do this\n"},
		"warning":         {func(u *UI) { u.Warn(errPlain) }, "gpg-bridge: warning: it failed\n"},
		"warning, hint":   {func(u *UI) { u.Warn(fmt.Errorf("because %w", errAdvised)) }, "gpg-bridge: warning: because it failed\ngpg-bridge: do this\n"},
		"several errors":  {func(u *UI) { u.Warn(errors.Join(errPlain, errAdvised)) }, "gpg-bridge: warning: it failed; it failed\ngpg-bridge: do this\n"},
		"banner":          {func(u *UI) { u.Notice(usertext.Info, "be welcome\n") }, "be welcome\n"},
		"raw mode":        {func(u *UI) { u.SetRaw(true); u.Say("hello", "do this") }, "gpg-bridge: hello\r\ngpg-bridge: do this\r\n"},
		"no raw mode":     {func(u *UI) { u.SetRaw(true); u.SetRaw(false); u.Say("hello", "") }, "gpg-bridge: hello\n"},
		"quiet: error":    {func(u *UI) { u.SetLevel(usertext.Quiet); u.Say("hello", "") }, "gpg-bridge: hello\n"},
		"quiet: warning":  {func(u *UI) { u.SetLevel(usertext.Fatal); u.Warn(errAdvised) }, ""},
		"quiet: banner":   {func(u *UI) { u.SetLevel(usertext.Error); u.Notice(usertext.Info, "be welcome\n") }, ""},
		"no log":          {func(u *UI) { u.Log().Debug("hello") }, ""},
		"quiet: progress": {func(u *UI) { u.SetLevel(usertext.Fatal); u.Tell("hello") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u, stderr := heard()
			test.do(u)
			require.Equal(t, test.want, stderr.String())
		})
	}
}

// What is printed for a file keeps every byte; what is printed for people is escaped.
func TestWhatStdoutGets(t *testing.T) {
	const text = "one\r\n\x1b[31m\xfftwo\n"
	var out bytes.Buffer
	user := New(nil, &out, nil)
	require.NoError(t, user.Output(text))
	require.Equal(t, text, out.String())
	out.Reset()
	require.NoError(t, user.Print(text))
	require.NotContains(t, out.String(), "\x1b")
}

func TestLogStandsBetweenMessages(t *testing.T) {
	u, stderr := heard()
	u.SetRaw(true)
	u.SetLevel(usertext.Debug1)
	u.Log().Debug("hello", "name", "two\nlines")
	require.Regexp(t, `^gpg-bridge: time=\S+ level=DEBUG msg=hello name="two\\nlines"\r\n$`, stderr.String())
}

// spokenError has words of ssh's.
type spokenError struct{ complete bool }

func (e *spokenError) Error() string { return "it failed here" }
func (e *spokenError) Hint() string  { return "do this" }

func (e *spokenError) SSHSays() ([]usertext.Message, bool) {
	return []usertext.Message{{Level: usertext.Error, Text: "ssh: it failed"}, {Level: usertext.Verbose, Text: "more"}}, e.complete
}

func TestExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code int
		said string
	}{
		"none":            {nil, 0, ""},
		"status":          {&ExitError{3, nil}, 3, ""},
		"status 0":        {&ExitError{0, nil}, 0, ""},
		"connection":      {&ExitError{255, errAdvised}, 255, "gpg-bridge: it failed\ngpg-bridge: do this\n"},
		"wrapped":         {fmt.Errorf("run: %w", &ExitError{255, errPlain}), 255, "gpg-bridge: it failed\n"},
		"usage":           {&UsageError{"gpg-bridge ssh", errPlain}, 2, "gpg-bridge: it failed\ngpg-bridge: see gpg-bridge ssh --help\n"},
		"anything else":   {errPlain, 1, "gpg-bridge: it failed\n"},
		"with what to do": {fmt.Errorf("agent: %w", errAdvised), 1, "gpg-bridge: agent: it failed\ngpg-bridge: do this\n"},
		"while quiet":     {&ExitError{255, errPlain}, 255, ""},
		"in ssh's words":  {&ExitError{255, &spokenError{true}}, 255, "ssh: it failed\ngpg-bridge: do this\n"},
		"in both words":   {&ExitError{255, &spokenError{false}}, 255, "ssh: it failed\ngpg-bridge: it failed here\ngpg-bridge: do this\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u, stderr := heard()
			if strings.Contains(name, "quiet") {
				u.SetLevel(usertext.Quiet)
			}
			require.Equal(t, test.code, u.ExitCode(test.err))
			require.Equal(t, test.said, stderr.String())
		})
	}
}

// runMain runs the program in this process.
