package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// TtyOpEnd ends the encoded terminal modes (RFC 4254 section 8, TTY_OP_END).
const TtyOpEnd = 0

// defaultTerm is the terminal type to ask for if TERM is not set.
const defaultTerm = "xterm"

// A Terminal is the user's own terminal, as far as a session needs it.
type Terminal struct {
	in, out *os.File
}

// Open returns the terminal that in reads from, or false if in is no terminal.
// out, the output of the same terminal, matters on Windows only, which has the size and
// the escape sequences there. The caller keeps the files and closes them.
func Open(in, out *os.File) (*Terminal, bool) {
	if in == nil || !term.IsTerminal(int(in.Fd())) {
		return nil, false
	}
	return &Terminal{in: in, out: out}, true
}

// PTY describes a remote terminal like this one: its type (name, the value of TERM, or
// "xterm" if that is empty), size and modes. It must be called before MakeRaw, which
// changes the modes.
func (t *Terminal) PTY(name string) *PTY {
	if name == "" {
		name = defaultTerm
	}
	size, _ := t.Size() // 0 if unknown, which is allowed
	return &PTY{Term: name, WindowSize: size, Modes: t.Modes()}
}

// Input reads what is typed at the terminal; on Windows, Ctrl-Z does not end it. Close
// ends a Read that waits (on Windows only with the next key) and leaves the terminal
// open.
//
// isFree, if not nil, is called whenever there are keys. While it returns false nothing is
// read: the keys are for somebody else. It is not called on Windows.
func (t *Terminal) Input(isFree func() bool) io.ReadCloser { return terminalInput(t.in, isFree) }

// replaceSize replaces the size that is buffered in sizes, whose capacity is 1. Only one
// goroutine may send to it.
func replaceSize(sizes chan WindowSize, size WindowSize) {
	select {
	case <-sizes:
	default:
	}
	sizes <- size
}
