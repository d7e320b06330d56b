//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// startDetached starts cmd in a session of its own: signals to our terminal, and
// its end, are not for it.
func startDetached(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
