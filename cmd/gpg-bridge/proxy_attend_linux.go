package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gpg-bridge/internal/retry"
)

// inheritedFD is the first of exec.Cmd's ExtraFiles.
const inheritedFD = 3

// lookAtSocket is between two looks at a connection that has left its process.
const lookAtSocket = 2 * time.Second

// handOver gives the attendant a handle of ssh's process (pidfd_open(2)), which
// stays that process's whatever happens to its number.
func handOver(cmd *exec.Cmd) {
	if fd, err := unix.PidfdOpen(os.Getppid(), 0); err == nil {
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "ssh")}
	}
}

func inode(conn *net.TCPConn) (inode uint64) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		var stat unix.Stat_t
		if unix.Fstat(int(fd), &stat) == nil {
			inode = stat.Ino
		}
	})
	return inode
}

// awaitConnection returns when no process has the connection any more. That is
// when ssh ends, unless it has left the connection to a process of its own
// making (ControlPersist, -f): from then on the socket itself is looked at.
func awaitConnection(ctx context.Context, _ int, socket uint64) {
	process, err := pidfd()
	if err == nil {
		awaitPidfd(ctx, process)
		_ = process.Close()
	}
	for ctx.Err() == nil && isSocketHeld(socket) {
		_ = retry.Sleep(ctx, lookAtSocket, nil)
	}
}

// pidfd takes what handOver gave.
func pidfd() (*os.File, error) {
	unix.CloseOnExec(inheritedFD)
	if err := unix.PidfdSendSignal(inheritedFD, 0, nil, 0); err == unix.EBADF || err == unix.EINVAL {
		return nil, err
	}
	if err := unix.SetNonblock(inheritedFD, true); err != nil {
		return nil, err
	}
	return os.NewFile(inheritedFD, "ssh"), nil
}

// awaitPidfd: it is readable when the process has ended.
func awaitPidfd(ctx context.Context, process *os.File) {
	raw, err := process.SyscallConn()
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = process.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && err != syscall.EINTR
	})
}

// isSocketHeld looks for a TCP socket that a process has open; one that has
// only its state left in the kernel has the inode 0 (proc(5), /proc/net/tcp).
func isSocketHeld(inode uint64) bool {
	if inode == 0 {
		return false
	}
	want := strconv.FormatUint(inode, 10)
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if hasSocket(name, want) {
			return true
		}
	}
	return false
}

func hasSocket(table, inode string) bool {
	const inodeField = 9
	file, err := os.Open(table)
	if err != nil {
		return false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > inodeField && fields[inodeField] == inode {
			return true
		}
	}
	return false
}
