//go:build unix

package ui

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"gpg-bridge/internal/terminal"
)

// console is the user's terminal, whatever stdin and stdout are.
type console struct{ in, out *os.File }

func openTerminal() (console, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	return console{tty, tty}, err
}

func (t console) close() { _ = t.in.Close() }

// ask asks q as ssh does (OpenSSH's readpassphrase.c): Ctrl-Z restores the terminal's modes
// and stops the program; when it continues, q is asked anew.
//
// If ctx ends first, the goroutine that reads stays until the process ends: not every system
// can interrupt the read of a terminal.
func (t console) ask(ctx context.Context, q question) ([]byte, error) {
	a := &asking{console: t, question: q, typed: newTypedLine(), done: make(chan error, 1)}
	for {
		err := a.once(ctx)
		switch {
		case errors.Is(err, errSuspend):
			terminal.SuspendGroup()
		case errors.Is(err, errContinued):
		case err != nil:
			return nil, err
		default:
			return a.typed.answer(), nil
		}
	}
}

// asking is one question, which may be asked several times.
type asking struct {
	console
	question
	typed   *typedLine
	reading bool       // a goroutine reads
	done    chan error // gets what the reading ended with
}

// errContinued says that the program was stopped, not by its own Ctrl-Z, and goes on.
var errContinued = errors.New("continued")

// once asks until there is an answer, a reason to ask again, or the end of ctx.
//
// The signals that stop a program are not caught, since Go cannot restore their default
// action (sigdisable in its signal_unix.go). So Ctrl-Z is read as a key.
func (a *asking) once(ctx context.Context) error {
	before, err := a.conceal(a.shown)
	if err != nil {
		return errNoTerminal
	}
	answered := false
	defer func() { // in this order: a closed terminal cannot be restored
		a.restore(before)
		if answered {
			a.close()
		}
	}()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	a.typed.forget()
	_, _ = io.WriteString(a.out, a.prompt)
	a.read(before)
	select {
	case err = <-a.done:
		a.reading = false
		answered = !errors.Is(err, errSuspend)
	case <-continued:
		err = errContinued
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if !a.shown || err != nil {
		_, _ = io.WriteString(a.out, "\n")
	}
	return err
}

// read starts the goroutine that reads the answer, if there is none. The system edits a line
// that is shown; a hidden one is edited here.
func (a *asking) read(modes *unix.Termios) {
	if a.reading {
		return
	}
	a.reading = true
	var keys editKeys
	if !a.shown {
		keys = editKeys{
			erase: modes.Cc[unix.VERASE], kill: modes.Cc[unix.VKILL], word: modes.Cc[unix.VWERASE],
			quote: modes.Cc[unix.VLNEXT], end: modes.Cc[unix.VEOF], suspend: modes.Cc[unix.VSUSP],
			none: terminal.VDisable, wide: modes.Iflag&unix.IUTF8 != 0, edits: true,
		}
	}
	go func() { a.done <- a.typed.read(a.in, keys) }()
}

// conceal has the terminal hide what is typed, and pass on the keys that edit it, unless shown
// is set. What was typed before is dropped. A program in the background is stopped by it until
// it is in the foreground.
func (t console) conceal(shown bool) (before *unix.Termios, err error) {
	fd := int(t.in.Fd())
	before, err = terminal.GetTermios(fd)
	if err != nil {
		return nil, err
	}
	modes := *before
	modes.Lflag |= unix.ICANON | unix.ISIG
	modes.Iflag |= unix.ICRNL
	if !shown {
		modes.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.IEXTEN
		modes.Cc[unix.VMIN], modes.Cc[unix.VTIME], modes.Cc[unix.VSUSP] = 1, 0, terminal.VDisable
	}
	return before, terminal.SetTermiosAndFlush(fd, &modes)
}

// restore undoes conceal, but not in the background, when another program has the terminal.
func (t console) restore(before *unix.Termios) {
	fd := int(t.in.Fd())
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
		_ = terminal.SetTermiosAndFlush(fd, before)
	}
}

// terminalIsCooked reports whether a terminal is read line by line and shows what is typed, so
// that no full-screen program has it, and nobody types a password.
func terminalIsCooked(file *os.File) bool {
	state, err := terminal.GetTermios(int(file.Fd()))
	const lines = unix.ICANON | unix.ECHO
	return err == nil && state.Lflag&lines == lines
}
