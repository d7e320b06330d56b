package mux

import (
	"context"
	"os"
	"syscall"
	"time"
)

// exitLook is how often a process is looked at where the system does not tell
// of its end.
const exitLook = time.Second

// A process is one that is not our child.
type process struct {
	pid    int
	handle *os.File // readable when the process has ended; nil: it is looked at
}

func openProcess(pid int) *process { return &process{pid, openHandle(pid)} }

// wait returns true when the process has ended, and false when ctx has.
func (p *process) wait(ctx context.Context) bool {
	if p.handle != nil {
		return waitReadable(ctx, p.handle)
	}
	ticker := time.NewTicker(exitLook)
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

func (p *process) close() {
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
