package linktest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
)

func testRun(t *testing.T, l link.Link) {
	var stdout, stderr bytes.Buffer
	require.NoError(t, l.Run(bounded(t), "echo out; echo err >&2; cat", nil, &stdout, &stderr), "cat ends: a nil stdin is empty")
	require.Equal(t, "out\n", stdout.String())
	require.Equal(t, "err\n", stderr.String())

	stdout.Reset()
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	require.NoError(t, l.Run(bounded(t), "cat", strings.NewReader(text), &stdout, nil))
	require.Equal(t, len(text), stdout.Len(), "all of the output is there when it returns")
	require.True(t, stdout.String() == text)

	stdin, feed := io.Pipe()
	defer feed.Close()
	require.NoError(t, l.Run(bounded(t), "true", stdin, nil, nil), "a Read of stdin that hangs is not waited for")
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func testRunFails(t *testing.T, l link.Link) {
	var exit *link.ExitError
	require.ErrorAs(t, l.Run(bounded(t), "exit 7", nil, nil, nil), &exit)
	require.Equal(t, link.ExitError{Status: 7}, *exit)

	err := l.Run(bounded(t), "kill -TERM $$", nil, nil, nil)
	if !errors.Is(err, link.ErrNoExitStatus) {
		require.ErrorAs(t, err, &exit)
		require.Equal(t, link.ExitError{Status: 255, Signal: "TERM"}, *exit)
	}
	require.Error(t, l.Run(bounded(t), "", nil, nil, nil))
	require.ErrorIs(t, l.Run(bounded(t), "echo text", nil, fullDisk{}, nil), errFull)
}

// cancelOnWrite ends a context when the command prints something.
type cancelOnWrite struct{ cancel func() }

func (c cancelOnWrite) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func testRunGivenUp(t *testing.T, l link.Link) {
	ctx, cancel := context.WithCancelCause(bounded(t))
	enough := errors.New("enough")
	stdout := cancelOnWrite{func() { cancel(enough) }}
	require.ErrorIs(t, l.Run(ctx, "echo started; exec sleep 100", nil, stdout, nil), enough)
	require.NoError(t, l.Run(bounded(t), "true", nil, nil, nil))
}
