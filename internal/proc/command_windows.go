package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Shell returns a command that runs as Win32-OpenSSH runs a ProxyCommand
// (ssh_proxy_connect in its sshconnect.c): without a shell, unless it names one as its
// program. It is not started yet.
func Shell(command string) (*exec.Cmd, error) {
	name := strings.TrimLeft(command, " \t")
	if quoted, isQuoted := strings.CutPrefix(name, `"`); isQuoted {
		name, _, _ = strings.Cut(quoted, `"`)
	} else if i := strings.IndexAny(name, " \t"); i >= 0 {
		name = name[:i]
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("no program %q: %w", name, err)
	}
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: strings.TrimLeft(command, " \t")}
	return cmd, nil
}

// LocalCommand returns a command that runs as Win32-OpenSSH runs a LocalCommand, by the
// system's command interpreter. It is not started yet.
func LocalCommand(command string) *exec.Cmd {
	shell := filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
	cmd := exec.Command(shell)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd.exe /s /c "` + command + `"`}
	return cmd
}

// HangUp kills a process: there is no signal to ask it to end.
func HangUp(p *os.Process) { _ = p.Kill() }
