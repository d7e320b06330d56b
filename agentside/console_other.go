//go:build !windows

package agentside

import (
	"os/exec"
	"syscall"
)

// apart puts a GnuPG program into a process group of its own. When its time is over,
// the whole group is killed: otherwise the programs that it has started would live on
// and keep its output open. An agent that it starts is a daemon, and not in the group.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
