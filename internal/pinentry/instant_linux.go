package pinentry

import (
	"math"

	"golang.org/x/sys/unix"
)

// Now returns this instant. If the kernel does not tell, it is later than every process: no prompt
// is taken for that of an earlier use.
func Now() Instant {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return math.MaxInt64
	}
	return Instant(now.Nano())
}
