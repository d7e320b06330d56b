//go:build unix

package signals

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// DieOf ends the process by a signal. It returns if that does not work.
//
// Go cannot restore the default action of SIGQUIT: its own prints all stacks, and exits with
// status 2. So another program takes this process's place, which gives it the default action
// (execve(2)). It leaves no core file, in which nothing of ours would be.
func DieOf(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	if number == syscall.SIGQUIT {
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -QUIT $$"}, nil)
		return
	}
	signal.Reset(sig)
	if syscall.Kill(syscall.Getpid(), number) == nil {
		<-time.After(time.Second) // the signal comes at once
	}
}
