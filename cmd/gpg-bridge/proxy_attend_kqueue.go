//go:build unix && !linux

package main

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// lookAtContext is how long a signal may wait.
const lookAtContext = 5 * time.Second

// handOver: a kqueue is not inherited (kqueue(2)). The attendant has ssh's
// process ID, and asks while ssh still waits for the proxy's end, or has just
// seen it.
func handOver(*exec.Cmd) {}

func inode(*net.TCPConn) uint64 { return 0 }

// awaitConnection returns when ssh's process has ended. A connection that it
// has left to another (ControlPersist, -f) is not followed: the bridge then
// lingers, and ends.
func awaitConnection(ctx context.Context, process int, _ uint64) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&change, process, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events := make([]unix.Kevent_t, 1)
	timeout := unix.NsecToTimespec(lookAtContext.Nanoseconds())
	changes := []unix.Kevent_t{change}
	for ctx.Err() == nil {
		n, err := unix.Kevent(queue, changes, events, &timeout)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		changes = nil
	}
}
