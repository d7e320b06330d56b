//go:build unix

package fakesshd

import (
	"os/exec"
	"syscall"
)

// setProcAttr gives the process a session of its own, as sshd does, so that
// its children can be signalled with it.
func setProcAttr(cmd *exec.Cmd, controllingTTY bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: controllingTTY}
}

// signalGroup signals the process and its group, which has the same number.
func signalGroup(cmd *exec.Cmd, number syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, number)
}

func exitSignal(err *exec.ExitError) (name string, dumped, ok bool) {
	status, isUnix := err.Sys().(syscall.WaitStatus)
	if !isUnix || !status.Signaled() {
		return "", false, false
	}
	name = signalNames[status.Signal()]
	if name == "" {
		name = "TERM"
	}
	return name, status.CoreDump(), true
}
