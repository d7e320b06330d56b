//go:build unix

package main

import "os"

// terminal is the user's terminal, whatever stdin and stdout are.
type terminal struct{ in, out *os.File }

func openTerminal() (terminal, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return terminal{tty, tty}, err
}

func (t terminal) close() { _ = t.in.Close() }
