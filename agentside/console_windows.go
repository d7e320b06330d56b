package agentside

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// withoutConsole keeps a GnuPG program away from the user's console, whose code
// pages each of them sets to UTF-8 and leaves so.
func withoutConsole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
