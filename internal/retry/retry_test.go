package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBackoffGrowsToItsLimit(t *testing.T) {
	b := Backoff{Min: time.Second, Max: time.Minute}
	for range 3 {
		for span := time.Second; span < 4*time.Minute; span *= 2 {
			upper := min(span, time.Minute)
			delay := b.Next()
			require.GreaterOrEqual(t, delay, upper/2)
			require.LessOrEqual(t, delay, upper)
		}
		b.Reset()
	}
}

func TestBackoffAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Backoff{Min: time.Second, Max: time.Minute, Steady: time.Minute}
		grow := func() {
			for range 10 {
				b.Next()
			}
		}
		grow()
		b.HeldSince(time.Time{})
		require.GreaterOrEqual(t, b.Next(), time.Minute/2, "there was no success")

		start := time.Now()
		time.Sleep(time.Minute)
		b.HeldSince(start)
		require.GreaterOrEqual(t, b.Next(), time.Minute/2, "it did not hold for long enough")

		time.Sleep(1)
		b.HeldSince(start)
		require.LessOrEqual(t, b.Next(), time.Second)
		require.LessOrEqual(t, b.Next(), 2*time.Second, "and it grows again")
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Hour, nil))
		require.Equal(t, time.Hour, time.Since(start))

		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		require.NoError(t, Sleep(t.Context(), time.Hour, wake))
		require.Equal(t, time.Hour, time.Since(start), "woken at once")

		over := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(over)
		require.ErrorIs(t, Sleep(ctx, time.Hour, nil), over)
	})
}

func TestResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		signals := make(chan struct{}, 1)
		looks, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			watchClocks(ctx, signals, func(_, _ time.Duration) bool { looks++; return looks >= 3 })
		}()
		start := time.Now()
		<-signals
		require.Equal(t, 3*checkInterval, time.Since(start))
		time.Sleep(10*checkInterval + time.Second) // the signals that nobody takes are one
		<-signals
		cancel()
		<-ended
		require.Zero(t, len(signals))
	})
	ctx, cancel := context.WithCancel(t.Context())
	resumed, stop := Resumed(ctx)
	cancel()
	stop()
	require.Zero(t, len(resumed))
}

func TestSlept(t *testing.T) {
	require.False(t, slept(checkInterval, checkInterval))
	require.False(t, slept(2*checkInterval, 2*checkInterval), "a busy machine")
	require.False(t, slept(checkInterval+time.Second, checkInterval), "a small correction")
	require.False(t, slept(-time.Hour, checkInterval), "a clock set back")
	require.True(t, slept(time.Hour, checkInterval), "on Linux and macOS")
	require.True(t, slept(time.Hour, time.Hour), "on Windows, or stopped")
	require.True(t, slept(0, time.Hour), "a virtual machine whose wall clock was stopped too")
}
