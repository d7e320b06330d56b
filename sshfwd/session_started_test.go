package sshfwd

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lateWriter records whether something was written before Started was called.
type lateWriter struct {
	started *atomic.Bool
	early   atomic.Bool
}

func (w *lateWriter) Write(p []byte) (int, error) {
	if !w.started.Load() {
		w.early.Store(true)
	}
	return len(p), nil
}

// TestStartedComesBeforeOutput: however slow Started is, the output that came with the
// server's answer waits for it.
func TestStartedComesBeforeOutput(t *testing.T) {
	onBoth(t, func(t *testing.T, client *Client) {
		var started atomic.Bool
		out := &lateWriter{started: &started}
		status, err := client.Session(testContext(t), SessionRequest{
			Command: "echo out; echo err >&2", Stdout: out, Stderr: io.Writer(out),
			Started: func() {
				time.Sleep(20 * time.Millisecond)
				started.Store(true)
			},
		})
		require.NoError(t, err)
		require.Zero(t, status)
		require.False(t, out.early.Load())
	})
}
