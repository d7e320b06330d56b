package sshd

import "os/exec"

// runAs is never called: NewAccount makes no account here.
func runAs(*exec.Cmd, int, int) {}
