//go:build unix

package ui

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
)

func TestAskpassAnswers(t *testing.T) {
	f := asker.NewProgram(t)
	var said bytes.Buffer
	p := &prompter{ui: New(nil, io.Discard, &said), askpass: askpass{program: f.Path("askpass"), allowed: true, first: true}}
	for _, c := range []struct {
		name, script, answer string
		confirmed            bool
	}{
		{"a line", "echo ' ses ame'", " ses ame", false},
		{"no line end", "printf sesame", "sesame", false},
		{"CRLF and more", `printf 'sesame\r\nmore\n'`, "sesame", false},
		{"nothing", "true", "", true},
		{"yes", "echo YES", "YES", true},
		{"no", "echo no", "no", false},
		{"cancelled", "echo sesame; exit 1", "", false},
		{"killed", "kill $$", "", false},
		{"too much", "head -c 100000 /dev/zero | tr '\\0' x", "", false},
		{"no input", "cat; echo sesame", "sesame", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.Script(c.script)
			secret, err := p.AskSecret(t.Context(), "prompt: ")
			require.NoError(t, err)
			require.Equal(t, c.answer, string(secret))
			answer, err := p.Ask(t.Context(), "prompt: ")
			require.NoError(t, err)
			require.Equal(t, c.answer, answer)
			require.Equal(t, c.confirmed, p.Confirm(t.Context(), "may I?"))
		})
	}
	f.Script(`echo "$SSH_ASKPASS_PROMPT|$1" >>"$0.called"; echo yes`)
	_, _ = p.AskSecret(t.Context(), "one")
	require.True(t, p.Confirm(t.Context(), "two"))
	require.Equal(t, "|one\nconfirm|two\n", f.Called())

	p.askpass.allowed, p.askpass.first = false, false
	require.False(t, p.Confirm(t.Context(), "three"), "nothing but an askpass program can confirm")
	require.Empty(t, said.String())
	p.askpass = askpass{program: f.Path("missing"), allowed: true, first: true}
	secret, err := p.AskSecret(t.Context(), "prompt")
	require.NoError(t, err)
	require.Empty(t, secret)
	require.Contains(t, said.String(), "cannot ask through SSH_ASKPASS")
}

func TestAskpassIsCancelled(t *testing.T) {
	f := asker.NewProgram(t)
	f.Script(`echo >"$0.called"; exec sleep 60`)
	p := &prompter{ui: New(nil, io.Discard, io.Discard), askpass: askpass{program: f.Path("askpass"), allowed: true, first: true}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for f.Called() == "" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	})
	_, err := p.AskSecret(ctx, "prompt")
	require.ErrorIs(t, err, context.Canceled)
}
