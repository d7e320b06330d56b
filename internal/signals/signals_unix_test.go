//go:build unix

package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const signalPatience = 20 * time.Second

// sendSelf sends this process signals, one after the other.
func sendSelf(t *testing.T, signals ...syscall.Signal) {
	t.Helper()
	for _, sig := range signals {
		require.NoError(t, syscall.Kill(os.Getpid(), sig))
	}
}

func requireEnded(t *testing.T, ctx context.Context, why string) {
	t.Helper()
	select {
	case <-ctx.Done():
		require.ErrorContains(t, context.Cause(ctx), why)
	case <-time.After(signalPatience):
		require.Fail(t, "the signal did not come")
	}
}

func TestSignalsEndTheRun(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		ctx, stop := Until(t.Context(), func() bool { return false })
		sendSelf(t, syscall.SIGPIPE, sig)
		requireEnded(t, ctx, sig.String())
		stop()
	}
}

// A signal that nohup has ignored stays ignored.
func TestIgnoredSignalStaysIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	t.Cleanup(func() { // Reset alone would leave it ignored
		again := make(chan os.Signal, 1)
		signal.Notify(again, syscall.SIGHUP)
		signal.Stop(again)
		require.False(t, signal.Ignored(syscall.SIGHUP))
	})
	ctx, stop := Until(t.Context(), func() bool { return false })
	defer stop()
	sendSelf(t, syscall.SIGHUP, syscall.SIGTERM)
	requireEnded(t, ctx, syscall.SIGTERM.String())
}

func TestSignalsOfKeysAreForThePrompt(t *testing.T) {
	asked := make(chan bool)
	ctx, stop := Until(t.Context(), func() bool { return <-asked })
	defer stop()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		sendSelf(t, sig)
		asked <- true
		require.NoError(t, ctx.Err())
	}
	sendSelf(t, syscall.SIGTERM)
	requireEnded(t, ctx, syscall.SIGTERM.String())
}
