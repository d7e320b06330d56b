//go:build linux || darwin

package sshfwd

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// stopPatience is how long Suspend waits for a stop signal to take effect. A
// process that no shell controls is not stopped by it.
const stopPatience = 500 * time.Millisecond

// CanSuspend: this system can stop a program and let it go on.
const CanSuspend = true

// Suspend stops this program, as Ctrl-Z does one that is not in raw mode, and
// returns when it goes on (client_suspend_self in OpenSSH's clientloop.c). The
// signal may stop the caller a moment late, so it waits for SIGCONT.
func Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(stopPatience):
	}
}

// OnContinue calls f whenever this program goes on after it was stopped, by
// whatever signal. stop ends that and waits for the goroutine; f must not call
// it.
func OnContinue(f func()) (stop func()) {
	continued := make(chan os.Signal, 1)
	done := make(chan struct{})
	signal.Notify(continued, syscall.SIGCONT)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-continued:
				f()
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		signal.Stop(continued)
		close(done)
		wg.Wait()
	})
}
