package sshfwd

import (
	"io"
	"os"

	"golang.org/x/term"
)

// ttyOpEnd ends the encoded terminal modes (RFC 4254 section 8, TTY_OP_END).
const ttyOpEnd = 0

// defaultTerm is asked for where TERM is not set.
const defaultTerm = "xterm"

// A Terminal is the user's own, as far as a session needs it.
type Terminal struct {
	in, out *os.File
}

// OpenTerminal returns the terminal that in is, or false if in is none. out,
// the output of the same terminal, matters on Windows only, where size and
// escape sequences belong to it. The files stay the caller's.
func OpenTerminal(in, out *os.File) (*Terminal, bool) {
	if in == nil || !term.IsTerminal(int(in.Fd())) {
		return nil, false
	}
	return &Terminal{in: in, out: out}, true
}

// PTY is the request for a remote terminal like this one: its type (from TERM;
// "xterm" where name is empty), size and modes. Call it before MakeRaw, whose
// modes are not the user's.
func (t *Terminal) PTY(name string) *PTY {
	if name == "" {
		name = defaultTerm
	}
	size, _ := t.Size() // unknown is 0, and allowed
	return &PTY{Term: name, WindowSize: size, Modes: t.Modes()}
}

// Input reads the terminal's input: in, and on Windows without the rule that
// Ctrl-Z is the end of a file. Close ends a Read that waits, on Windows with
// the next key only; the terminal stays open.
func (t *Terminal) Input() io.ReadCloser { return terminalInput(t.in) }

// offerSize puts size into a channel of one place, in the stead of an older
// one. Only one goroutine may offer.
func offerSize(sizes chan WindowSize, size WindowSize) {
	select {
	case <-sizes:
	default:
	}
	sizes <- size
}
