package ui

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// console is the user's console, whatever stdin and stdout are.
type console struct{ in, out *os.File }

func openTerminal() (console, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return console{}, err
	}
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	return console{in, out}, err
}

// close leaves CONIN$ open: closing it blocks while a read is under way.
func (t console) close() { _ = t.out.Close() }

// ask asks q. If ctx ends first, the console's mode is restored; the goroutine that reads stays
// until the process ends.
func (t console) ask(ctx context.Context, q question) ([]byte, error) {
	before, err := term.GetState(int(t.in.Fd()))
	if err != nil {
		return nil, errNoTerminal
	}
	_, _ = io.WriteString(t.out, q.prompt)
	var answer []byte
	done := make(chan error, 1)
	go func() {
		var err error
		answer, err = t.read(q.shown)
		done <- err
	}()
	select {
	case err = <-done:
		t.close()
		return answer, err
	case <-ctx.Done():
		_ = term.Restore(int(t.in.Fd()), before)
		_, _ = io.WriteString(t.out, "\n")
		return nil, context.Cause(ctx)
	}
}

func (t console) read(shown bool) ([]byte, error) {
	if !shown {
		secret, err := term.ReadPassword(int(t.in.Fd()))
		_, _ = io.WriteString(t.out, "\n")
		if errors.Is(err, io.EOF) { // an empty answer
			err = nil
		}
		return secret, err
	}
	typed := newTypedLine()
	err := typed.read(t.in, editKeys{})
	return typed.answer(), err
}

// terminalIsCooked reports whether the console is read line by line and shows what is typed.
func terminalIsCooked(*os.File) bool {
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer func() { _, _ = tty.in.Close(), tty.out.Close() }()
	var mode uint32
	const lines = windows.ENABLE_LINE_INPUT | windows.ENABLE_ECHO_INPUT
	return windows.GetConsoleMode(windows.Handle(tty.in.Fd()), &mode) == nil && mode&lines == lines
}
