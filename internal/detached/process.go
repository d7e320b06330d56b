package detached

import (
	"os"
	"os/exec"
	"syscall"

	"gpg-bridge/internal/realssh"
)

// A Process is this program, to be run by Start with other arguments, so that it goes on
// when this process has ended. It runs in a private directory, and in an environment in
// which every path means what it means here.
type Process struct {
	// Env is its environment: ours, without what New leaves out.
	Env []string
	// LeftOut are the names of the variables that New left out: their values lead to
	// where others may write.
	LeftOut []string

	// Stdout and Stderr are what it writes to, and the null device where they are nil.
	Stdout, Stderr *os.File
	// ExtraFiles are its descriptors from 3 on. They stay the caller's to close.
	ExtraFiles []*os.File

	program string
	args    []string
	dir     string
}

// New prepares this program to be run in dir, which must be private (private.Runtime),
// with the arguments args. The error has a hint for the user if GNUPGHOME leads to what
// another user can make.
func New(dir string, args ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		here = "" // perhaps it was removed: no relative path means anything
	}
	env, leftOut, err := environmentFor(realssh.Without(os.Environ()), here, dir)
	if err != nil {
		return nil, err
	}
	return &Process{program: self, args: args, dir: dir, Env: env, LeftOut: leftOut}, nil
}

// command makes the process's Cmd. A Cmd can be started only once, even if that fails
// (os/exec), so each try needs its own.
func (p *Process) command(attr *syscall.SysProcAttr) *exec.Cmd {
	cmd := exec.Command(p.program, p.args...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr = p.dir, p.Env, p.ExtraFiles, attr
	if p.Stdout != nil {
		cmd.Stdout = p.Stdout
	}
	if p.Stderr != nil {
		cmd.Stderr = p.Stderr
	}
	return cmd
}

// Start starts the process, as far apart from this one as the system allows. The caller
// waits for it (Cmd.Wait) or lets it go (Process.Release).
func (p *Process) Start() (*exec.Cmd, error) {
	return p.startAs(waysApart(), (*exec.Cmd).Start, isForbidden)
}

// startAs tries the ways in order, until one is not forbidden.
func (p *Process) startAs(ways []*syscall.SysProcAttr, start func(*exec.Cmd) error, forbidden func(error) bool) (cmd *exec.Cmd, err error) {
	for _, way := range ways {
		cmd = p.command(way)
		if err = start(cmd); err == nil || !forbidden(err) {
			break
		}
	}
	return cmd, err
}
