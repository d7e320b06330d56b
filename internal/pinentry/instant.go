package pinentry

import "time"

// An Instant is a moment on the clock by which the system says when a process began. Nobody
// can set that clock, and on Linux it goes on while the machine sleeps (CLOCK_BOOTTIME),
// unlike Go's monotonic clock. Its zero has no meaning.
type Instant time.Duration

// Sub returns the time from another instant until this one.
func (i Instant) Sub(other Instant) time.Duration { return time.Duration(i - other) }

// Add returns the instant that is so much later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }
