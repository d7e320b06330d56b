package sshfwd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

const fdpassExists = false

// shellCommand starts the program that the command begins with, as
// Win32-OpenSSH does (ssh_proxy_connect in its sshconnect.c): without a shell,
// unless the command names one.
func shellCommand(command string) (*exec.Cmd, error) {
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
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: command}
	return cmd, nil
}

// safeInCommand keeps what cmd.exe would expand out of a command that may be
// for it, or a batch file's.
func safeInCommand(name string) bool { return !strings.ContainsAny(name, `"%^!`) }

// hangUp: there is no signal to ask with. What stands between the process and
// the end of its input is up to it.
func hangUp(p *os.Process) { _ = p.Kill() }

func (c *Config) runProxyDialer(context.Context, string) (*route, error) {
	return nil, &UnsupportedError{"ProxyUseFdpass", "yes"}
}
