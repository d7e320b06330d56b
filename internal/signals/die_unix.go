//go:build unix

package signals

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// DieOf ends the process by a signal. It returns if that does not work.
func DieOf(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	signal.Reset(sig)
	if syscall.Kill(syscall.Getpid(), number) == nil {
		<-time.After(time.Second) // the signal comes at once
	}
}
