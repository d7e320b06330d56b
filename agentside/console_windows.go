package agentside

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// apart keeps a GnuPG program away from the user's console: each of them sets the
// console's code pages to UTF-8 and does not set them back.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW}
}
