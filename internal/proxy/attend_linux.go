package proxy

import (
	"bufio"
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/retry"
)

// handleFD is the descriptor of parentHandle's file in the attendant (os/exec,
// Cmd.ExtraFiles).
const handleFD = 3

// socketInterval is between two looks at a connection that ssh's process has left to
// another.
const socketInterval = 2 * time.Second

// parentHandle returns a handle of ssh's process for the attendant to be started with, which
// the caller must close; none on a kernel without pidfds.
func parentHandle() []*os.File {
	if handle := proc.OpenProcess(os.Getppid()).Handle(); handle != nil {
		return []*os.File{handle}
	}
	return nil
}

// inode returns the number of the connection's socket, or 0.
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

// awaitConnection returns when no process has the connection any more, or ctx ends. That is
// when ssh ends, unless it has left the connection to a process that it has started
// (ControlPersist, -f): then the socket itself is looked at.
func awaitConnection(ctx context.Context, _ int, socket uint64) {
	if ssh, err := proc.InheritProcess(handleFD); err == nil {
		ssh.Wait(ctx)
		ssh.Close()
	}
	for ctx.Err() == nil && isSocketHeld(socket) {
		_ = retry.Sleep(ctx, socketInterval, nil)
	}
}

// isSocketHeld reports whether any process has this TCP socket open. One of which only the
// kernel's state is left has the inode 0 (proc(5), /proc/net/tcp).
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
