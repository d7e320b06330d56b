//go:build unix && !linux

package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// contextInterval is how long the end of a context may go unnoticed.
const contextInterval = 5 * time.Second

// parentHandle: a kqueue is not inherited (kqueue(2)). The attendant has the number of
// ssh's process, and begins to wait for it while ssh still waits for the proxy's end, or
// has just seen it.
func parentHandle() []*os.File { return nil }

func inode(*net.TCPConn) uint64 { return 0 }

// awaitConnection returns when ssh's process has ended, or ctx. A connection that ssh has
// left to another process (ControlPersist, -f) is not followed, so the bridge then lingers,
// and ends.
func awaitConnection(ctx context.Context, process int, _ uint64) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(queue) }()
	change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
	unix.SetKevent(&change, process, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	events := make([]unix.Kevent_t, 1)
	timeout := unix.NsecToTimespec(contextInterval.Nanoseconds())
	changes := []unix.Kevent_t{change}
	for ctx.Err() == nil {
		n, err := unix.Kevent(queue, changes, events, &timeout)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		changes = nil
	}
}
