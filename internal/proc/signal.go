package proc

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// signalGrace is how much later than our child we may receive a signal that is for both,
// and interruptGrace the same if the child has certainly died of a key's signal: on a loaded
// machine the child may be reaped long before our own handler runs.
const (
	signalGrace    = 50 * time.Millisecond
	interruptGrace = time.Second
)

// isOfKey reports whether a terminal sends the signal for a key.
func isOfKey(sig syscall.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGQUIT }

// AwaitSignal waits a moment for ctx to end if err may come from a child that has died of a
// signal: a Ctrl-C goes to the child and to us, and either may handle it first. A shell
// reports such a death as a status above 128, and ssh -W as 255.
func AwaitSignal(ctx context.Context, err error) {
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok || ended.ExitCode() >= 0 && ended.ExitCode() <= 128 {
		return
	}
	grace := signalGrace
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() && isOfKey(status.Signal()) {
		grace = interruptGrace
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
