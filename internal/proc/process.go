package proc

import (
	"context"
	"os"
	"syscall"
	"time"
)

// pollInterval is the time between two checks of a process, if the system does not tell of
// its end.
const pollInterval = time.Second

// A Process is a process that need not be our child.
type Process struct {
	pid    int
	handle *os.File // readable when the process has ended; nil if it is polled
}

// OpenProcess opens the process with this ID, which need not exist. The caller must call
// Close.
func OpenProcess(pid int) *Process { return &Process{pid, openHandle(pid)} }

// Handle is a file that stands for this very process even if its ID is given to another, and
// that a child can inherit; nil if the system has no such files.
func (p *Process) Handle() *os.File { return p.handle }

// Wait waits for the end of the process. It returns false if ctx ends first.
func (p *Process) Wait(ctx context.Context) bool {
	if p.handle != nil {
		return waitReadable(ctx, p.handle)
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		if !isRunning(p.pid) {
			return true
		}
	}
}

// Close closes the handle. The process goes on.
func (p *Process) Close() {
	if p.handle != nil {
		_ = p.handle.Close()
	}
}

func isRunning(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = process.Release() }()
	err = process.Signal(syscall.Signal(0))
	return err == nil || os.IsPermission(err)
}
