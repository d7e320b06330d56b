package mux

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openHandle returns a pidfd (pidfd_open(2), since Linux 5.3; non-blocking since
// 5.10), or nil where there is none.
func openHandle(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "pidfd")
}

// waitReadable waits without a thread of its own.
func waitReadable(ctx context.Context, handle *os.File) bool {
	defer context.AfterFunc(ctx, func() { _ = handle.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := handle.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	return err == nil && ctx.Err() == nil
}
