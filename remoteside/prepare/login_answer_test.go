package prepare

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loginPrinter is a host that prints a text in answer to the question for the login
// shell's home, with m for the marker.
type loginPrinter struct {
	text  string
	step  int
	end   error
	stays bool
}

func (h loginPrinter) Run(ctx context.Context, command string, _ io.Reader, stdout, _ io.Writer) error {
	text := strings.ReplaceAll(h.text, "m ", regexp.MustCompile(`gpg-bridge:[0-9a-f]{16}`).FindString(command)+" ")
	for ; text != ""; text = text[min(len(text), h.step):] {
		if n, err := io.WriteString(stdout, text[:min(len(text), h.step)]); err != nil || n == 0 {
			return err
		}
	}
	if h.stays {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return h.end
}

// Of all that start-up files print only what stands behind the marker counts, and a
// home that cannot be one is none.
func TestLoginAnswerIsRead(t *testing.T) {
	long := "/" + strings.Repeat("x", maxSocketPath-1)
	for text, want := range map[string]string{
		"":                                 "",
		"m plain /a\nm login /a\nm end\n":  "",
		"m plain /a\nm login /b\nm end\n":  "/b",
		"m login /b\n":                     "/b",
		"rc\r\nm login /a b\r\nrc m end\n": "/a b",
		"m login /a\nm login /b\n":         "/b",
		"m login /b":                       "", // no whole line
		"x m login /b\n":                   "",
		"m other /b\n":                     "",
		"m plain /b\n":                     "",
		"m login b\n":                      "!",
		"m login /\x1b\n":                  "!",
		"m login " + long + "\n":           long,
		"m login " + long + "x\n":          "!",
		strings.Repeat("x", 5000) + "\nm login /b\n":   "/b",
		"m login /" + strings.Repeat("x", 5000) + "\n": "!",
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			home, err := LoginHome(t.Context(), loginPrinter{text: text, step: step})
			require.Equal(t, want == "!", errors.Is(err, ErrLoginHome), "%q: %v", text, err)
			require.Equal(t, strings.TrimPrefix(want, "!"), home, "%q", text)
		}
	}
}

// What the start-up files have left running is not waited for, and an answer counts
// however the command ended.
func TestLoginAnswerOfACommandThatFails(t *testing.T) {
	home, err := LoginHome(t.Context(), loginPrinter{text: "m login /b\nm end\n", step: 100, stays: true})
	require.NoError(t, err)
	require.Equal(t, "/b", home)
	home, err = LoginHome(t.Context(), loginPrinter{text: "m login /b\n", step: 100, end: errPlayed})
	require.NoError(t, err)
	require.Equal(t, "/b", home)
	_, err = LoginHome(t.Context(), loginPrinter{text: "m plain /b\n", step: 100, end: errPlayed})
	require.ErrorIs(t, err, errPlayed)
}

// What is said when the start-up files were told to end does not count; what they
// said before does.
func TestLoginAnswerOfFilesThatWereEnded(t *testing.T) {
	for _, stays := range []bool{true, false} {
		_, err := LoginHome(t.Context(), loginPrinter{text: "m plain /a\nm hung\nm login /b\nm end\n", step: 100, stays: stays})
		require.ErrorAs(t, err, new(*LoginTimeoutError))
		home, err := LoginHome(t.Context(), loginPrinter{text: "m plain /a\nm login /b\nm hung\nm end\n", step: 100, stays: stays})
		require.NoError(t, err)
		require.Equal(t, "/b", home)
	}
}

func TestLoginLineIsBounded(t *testing.T) {
	a := &loginAnswer{mark: "m", done: func() {}}
	for range 10 {
		n, err := a.Write(make([]byte, 500))
		require.NoError(t, err)
		require.Equal(t, 500, n)
	}
	require.Len(t, a.line, maxReportLine)
}

// One that cannot be removed is told, and a path that cannot be one is not asked for.
func TestSocketThatCannotBeRemoved(t *testing.T) {
	require.NoError(t, RemoveSocket(t.Context(), printer{}, "/s"))
	require.ErrorIs(t, RemoveSocket(t.Context(), printer{end: errPlayed}, "/s"), errPlayed)
	require.ErrorIs(t, RemoveSocket(t.Context(), nil, "s"), errPathRelative)
}

// The reason of a refusal is the host's last word about it, or that it said none.
func TestRefusalIsExplained(t *testing.T) {
	explain := func(h Host, path string) *RefusedError {
		refused, ok := errors.AsType[*RefusedError](ExplainRefusal(t.Context(), h, path))
		require.True(t, ok)
		require.Equal(t, path, refused.Path)
		require.NotEmpty(t, refused.Hint())
		return refused
	}
	say := func(word string) Host {
		return hostOf(func(mark string) string { return "rc\n" + mark + " " + word + "\r\n" })
	}
	for _, known := range refusalWords {
		require.Equal(t, known.refusal, explain(say(known.word), "/s").Refusal)
	}
	require.Equal(t, RefusedUnknown, explain(say("else"), "/s").Refusal)
	require.Equal(t, errPlayed, explain(printer{end: errPlayed}, "/s").Err)
	require.Equal(t, RefusedRelative, explain(nil, "s").Refusal)
	require.Equal(t, RefusedLong, explain(nil, "/"+strings.Repeat("x", maxSocketPath)).Refusal)
	require.Equal(t, errPathControl, explain(nil, "/\n").Err)
	a := answerWriter{mark: "m"}
	_, _ = a.Write([]byte(strings.Repeat("x", maxFirstLine+5)))
	require.Len(t, a.line, maxFirstLine)
	_, _ = a.Write([]byte("\nm x\nm"))
	require.Equal(t, "x", a.word)
	require.Equal(t, "m", string(a.line))
}

// hostOf is a host that answers a script by what the function makes of its marker.
type hostOf func(mark string) string

func (h hostOf) Run(_ context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) error {
	script, err := io.ReadAll(stdin)
	if err != nil {
		return err
	}
	mark := regexp.MustCompile(`gpg-bridge:[0-9a-f]{16}`).FindString(string(script))
	_, err = io.WriteString(stdout, h(mark))
	return err
}
