// Package retry decides when to try again: after a delay that grows, or at once
// when the machine wakes up.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff gives growing delays: each is drawn from the upper half of a span
// that doubles from Min to Max, so that many clients of one host do not come
// back together.
type Backoff struct {
	Min, Max time.Duration

	// Steady is how long a success has to hold for the delay after it to be a short one
	// again: one that ends sooner is just another failure. HeldSince alone uses it.
	Steady time.Duration

	span time.Duration // that the last delay was drawn from
}

// ReconnectMin is the least time between two connections to a host.
const ReconnectMin = time.Second

// Reconnecting is for connections to a host. One that has held for a minute makes the next
// loss a first one.
func Reconnecting() Backoff {
	return Backoff{Min: ReconnectMin, Max: time.Minute, Steady: time.Minute}
}

// Next returns the delay before the next try.
func (b *Backoff) Next() time.Duration {
	b.span = min(max(2*b.span, b.Min), b.Max)
	return b.span/2 + rand.N(b.span/2+1)
}

// Reset makes the next delay a short one.
func (b *Backoff) Reset() { b.span = 0 }

// HeldSince makes the next delay a short one if a success, which came at start and ends
// now, has held for longer than Steady. A zero start means that there was none.
func (b *Backoff) HeldSince(start time.Time) {
	if !start.IsZero() && time.Since(start) > b.Steady {
		b.Reset()
	}
}

// Sleep waits for d, or until wake is signalled. It returns ctx's cause if ctx ends
// first.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Until returns a context that also ends when over is closed; a nil over never is. The caller
// calls stop, which returns when nobody waits for over any more.
func Until(ctx context.Context, over <-chan struct{}) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		select {
		case <-over:
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

const (
	checkInterval = 5 * time.Second
	// jump is how far the clocks must be off between two checks.
	jump = 10 * time.Second
)

// Resumed signals each time that the machine has slept, or that this process was stopped for
// long; at the latest checkInterval afterwards. The channel holds one signal. The caller calls
// stop, which returns when no more comes.
func Resumed(ctx context.Context) (resumed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		watchClocks(ctx, signals, slept)
	}()
	return signals, func() {
		cancel()
		<-ended
	}
}

func watchClocks(ctx context.Context, signals chan<- struct{}, slept func(wall, monotonic time.Duration) bool) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		if slept(now.Round(0).Sub(last.Round(0)), now.Sub(last)) {
			select {
			case signals <- struct{}{}:
			default:
			}
		}
		last = now
	}
}

// slept reports whether the machine has slept or the process was stopped, from how far
// the two clocks of a time.Time have advanced between two checks. While the machine
// sleeps, Go's monotonic clock stands still on Linux (CLOCK_MONOTONIC) and macOS
// (mach_absolute_time), so the wall clock gets ahead. If that was merely set, one try is
// made too early. On Windows the monotonic clock goes on (InterruptTime of
// KUSER_SHARED_DATA), as everywhere while the process is stopped: the check is late
// then.
func slept(wall, monotonic time.Duration) bool {
	return wall-monotonic > jump || monotonic > checkInterval+jump
}
