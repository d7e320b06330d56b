//go:build unix

package sshmaster

import (
	"os"
	"slices"
	"syscall"
)

// waitThenRun is a shell that becomes its arguments when it may, and ends when it never will.
const waitThenRun = `read -r go <&3 || exit; exec 3<&-; exec "$@"`

// A Pending is a session in the background, as of -f: in a session of the system's own and without
// our input (daemon(3) in main of ssh.c). It has its process already, so that another can wait for
// its end, and begins later. Whether an ssh that uses another's connection goes to the background
// itself depends on its version (9.2 does not, 10.0 does): it is not asked to.
type Pending struct {
	PID  int
	gate *os.File
}

// Pending makes one. Begin or Cancel must be called.
func (m *Master) Pending() (*Pending, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	words := slices.Concat([]string{"/bin/sh", "sh", "-c", waitThenRun, "ssh", m.options.SSH}, m.stayingWords())
	process, err := m.sessionOptions().start(words, nil, &os.ProcAttr{
		Files: []*os.File{theirs}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	p := &Pending{PID: process.Pid, gate: ours}
	return p, process.Release() // which forgets the ID
}

// stayingWords are the session's, without -f and what stands for it in ssh_config.
func (m *Master) stayingWords() []string {
	stays := option("ForkAfterAuthentication", "no")
	if m.ours {
		return slices.Concat(stays, m.options.sessionArgs(m.path, false, 'f'))
	}
	line := m.options.Line.Without('f')
	return slices.Concat(stays, line.Words(), line.Command)
}

// Begin lets the session begin.
func (p *Pending) Begin() error {
	defer p.gate.Close()
	_, err := p.gate.WriteString("\n")
	return err
}

// Cancel ends it before it began. It is no error if it has begun.
func (p *Pending) Cancel() { _ = p.gate.Close() }
