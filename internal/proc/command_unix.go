//go:build unix

package proc

import (
	"cmp"
	"os"
	"os/exec"
	"syscall"
)

// Shell returns a command that runs as ssh runs a ProxyCommand: the user's shell replaces
// itself by it (exec), in our process group, so that it may use the terminal. It is not
// started yet.
func Shell(command string) (*exec.Cmd, error) {
	return exec.Command(userShell(), "-c", "exec "+command), nil
}

// LocalCommand returns a command that runs as ssh runs a LocalCommand (ssh_local_cmd in
// sshconnect.c): by the user's shell, in our process group. It is not started yet.
func LocalCommand(command string) *exec.Cmd { return exec.Command(userShell(), "-c", command) }

func userShell() string { return cmp.Or(os.Getenv("SHELL"), "/bin/sh") }

// HangUp asks a process to end as ssh does.
func HangUp(p *os.Process) { _ = p.Signal(syscall.SIGHUP) }
