//go:build unix

package realssh

import (
	"os/exec"
	"syscall"
)

// endTogether makes a command the leader of a process group, which is killed as a whole when
// the command's context ends.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
