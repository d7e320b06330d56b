package proc

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// openHandle returns a pidfd (pidfd_open(2), since Linux 5.3), or nil where there is none.
func openHandle(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), "pidfd")
}

// InheritProcess returns the process whose Handle this program was started with, as its
// descriptor fd (os/exec, Cmd.ExtraFiles). The error says that there is none.
func InheritProcess(fd int) (*Process, error) {
	unix.CloseOnExec(fd)
	if err := unix.PidfdSendSignal(fd, 0, nil, 0); err == unix.EBADF || err == unix.EINVAL {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return &Process{handle: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// waitReadable reports whether the handle became readable before ctx ended. It occupies
// no thread.
func waitReadable(ctx context.Context, handle *os.File) bool {
	_ = handle.SetReadDeadline(time.Time{}) // which an earlier wait may have set
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
