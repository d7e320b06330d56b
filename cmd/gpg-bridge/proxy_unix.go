//go:build unix

package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"syscall"
)

// untilParentEnds: a parent that is gone shows as the end of our input.
func untilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// shellCommand runs a command as ssh runs a ProxyCommand.
func shellCommand(command string) (*exec.Cmd, error) {
	return exec.Command(cmp.Or(os.Getenv("SHELL"), "/bin/sh"), "-c", "exec "+command), nil
}

// hangUp asks a proxy to end as ssh does.
func hangUp(p *os.Process) { _ = p.Signal(syscall.SIGHUP) }
