// Package retry says when to try again: after a delay that grows, or at once
// when the machine wakes up.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff gives growing delays: each is drawn from the upper half of a span
// that doubles from Min to Max, so that many clients of one host do not come
// back together. The zero value of the rest is ready.
type Backoff struct {
	Min, Max time.Duration
	span     time.Duration
}

// Next returns the delay before the next try.
func (b *Backoff) Next() time.Duration {
	b.span = min(max(2*b.span, b.Min), b.Max)
	return b.span/2 + rand.N(b.span/2+1)
}

// Reset makes the next delay a short one.
func (b *Backoff) Reset() { b.span = 0 }

// Sleep waits for d, less if wake is signalled, and returns ctx's cause when
// ctx ends first.
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

const (
	lookEvery = 5 * time.Second
	// jump is how much longer than one look something must have taken.
	jump = 10 * time.Second
)

// Resumed signals, until ctx ends, each time that the machine has slept, or that
// this process was stopped for long; at the latest lookEvery afterwards. The
// channel holds one signal. done is closed when its goroutine has ended.
func Resumed(ctx context.Context) (resumed <-chan struct{}, done <-chan struct{}) {
	signals, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		watchClocks(ctx, signals, slept)
	}()
	return signals, ended
}

func watchClocks(ctx context.Context, signals chan<- struct{}, slept func(wall, monotonic time.Duration) bool) {
	ticker := time.NewTicker(lookEvery)
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

// slept tells by how far the two clocks of a time.Time went between two looks.
// While the machine sleeps, Go's monotonic clock stands still on Linux
// (CLOCK_MONOTONIC) and macOS (mach_absolute_time): the wall clock is ahead then.
// A correction of the wall clock by so much wakes nobody but us. On Windows the
// monotonic clock goes on (InterruptTime of KUSER_SHARED_DATA), as it does
// everywhere while the process is stopped: the look is late then.
func slept(wall, monotonic time.Duration) bool {
	return wall-monotonic > jump || monotonic > lookEvery+jump
}
