//go:build linux || darwin

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long Suspend waits for a stop signal to take effect. It has none on a
// process that no shell controls.
const stopTimeout = 500 * time.Millisecond

// CanSuspend reports whether this system can stop a program and continue it.
const CanSuspend = true

// Suspend stops this program, as Ctrl-Z does outside raw mode, and returns when it is
// continued (client_suspend_self in OpenSSH's clientloop.c). The signal may take effect a
// moment late, so Suspend waits for SIGCONT.
func Suspend() { suspend(os.Getpid()) }

// SuspendGroup is Suspend for the whole process group, as Ctrl-Z itself stops it: git, for
// example, with the ssh that it runs.
func SuspendGroup() { suspend(0) }

func suspend(pid int) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(pid, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(stopTimeout):
	}
}

// OnContinue calls f whenever this program is continued after it was stopped, by whatever
// signal. stop ends that and waits for the goroutine; f must not call it.
func OnContinue(f func()) (stop func()) { return onSignals(f, syscall.SIGCONT) }

// onSignals calls f when one of the signals has come. stop ends that and waits for the
// goroutine; f must not call it.
func onSignals(f func(), which ...os.Signal) (stop func()) {
	received := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(received, which...)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-received:
				f()
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(received)
		close(done)
		wg.Wait()
	})
}
