package sshdtest

import "os/exec"

// runAs is never reached: NewAccount makes no account here.
func runAs(*exec.Cmd, int, int) {}
