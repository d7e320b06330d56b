//go:build !windows

package agentside

import "os/exec"

// withoutConsole is about Windows only.
func withoutConsole(*exec.Cmd) {}
