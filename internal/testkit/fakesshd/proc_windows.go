package fakesshd

import (
	"os/exec"
	"syscall"
)

func setProcAttr(*exec.Cmd, bool) {}

// signalGroup ends the process: Windows has no signals to send.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }

func exitSignal(*exec.ExitError) (name string, dumped, ok bool) { return "", false, false }
