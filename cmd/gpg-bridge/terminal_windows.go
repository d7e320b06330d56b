package main

import "os"

// terminal is the user's console, whatever stdin and stdout are.
type terminal struct{ in, out *os.File }

func openTerminal() (terminal, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return terminal{}, err
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	return terminal{in, out}, err
}

// close leaves CONIN$ open: closing it blocks while a read is under way.
func (t terminal) close() { _ = t.out.Close() }
