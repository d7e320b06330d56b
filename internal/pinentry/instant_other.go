//go:build !linux

package pinentry

import "time"

var loaded = time.Now()

// Now returns this instant. This system does not say when a process began, so any clock
// will do.
func Now() Instant { return Instant(time.Since(loaded)) }
