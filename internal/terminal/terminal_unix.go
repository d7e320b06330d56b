//go:build linux || darwin

package terminal

import (
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Size is the terminal's size in characters and pixels (TIOCGWINSZ, in
// ioctl_tty(2)).
func (t *Terminal) Size() (WindowSize, error) {
	winsize, err := unix.IoctlGetWinsize(int(t.in.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return WindowSize{}, fmt.Errorf("size of the terminal: %w", err)
	}
	return WindowSize{
		Cols: uint32(winsize.Col), Rows: uint32(winsize.Row),
		XPixels: uint32(winsize.Xpixel), YPixels: uint32(winsize.Ypixel),
	}, nil
}

// Modes are the terminal's current modes, encoded for pty-req (RFC 4254 section 8), all
// that OpenSSH sends (ttymodes.c). If they cannot be read it is only TtyOpEnd.
func (t *Terminal) Modes() []byte {
	termios, err := GetTermios(int(t.in.Fd()))
	if err != nil {
		return []byte{TtyOpEnd}
	}
	return encodeModes(termios)
}

// MakeRaw gives every key to the session, Ctrl-C among them, until restore is called. It
// also unsets the keys that suspend (VSUSP): another program that asks something on the
// terminal turns signals on again, but keeps the other modes that it finds, and Ctrl-Z
// would then stop us instead of it. restore may be called twice, and from any goroutine.
func (t *Terminal) MakeRaw() (restore func() error, err error) {
	fd := int(t.in.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("raw mode of the terminal: %w", err)
	}
	if termios, err := GetTermios(fd); err == nil {
		for _, index := range suspendChars() {
			termios.Cc[index] = VDisable
		}
		_ = setTermios(fd, termios)
	}
	return sync.OnceValue(func() error { return term.Restore(fd, state) }), nil
}

// TranslateEnter makes Enter an LF again in raw mode (ICRNL). Some programs that ask
// something on the terminal wait for one. The other modes, which such a program may have
// set, stay.
func (t *Terminal) TranslateEnter() error {
	termios, err := GetTermios(int(t.in.Fd()))
	if err != nil || termios.Iflag&unix.ICRNL != 0 {
		return err
	}
	termios.Iflag |= unix.ICRNL
	return setTermios(int(t.in.Fd()), termios)
}

// Resizes sends the terminal's size whenever it has changed (SIGWINCH), or may have
// changed while the program was stopped (SIGCONT). Only the newest size is kept for the
// receiver. stop ends it and waits for its goroutine.
func (t *Terminal) Resizes() (sizes <-chan WindowSize, stop func()) {
	newest := make(chan WindowSize, 1)
	return newest, onSignals(func() {
		if size, err := t.Size(); err == nil {
			replaceSize(newest, size)
		}
	}, syscall.SIGWINCH, syscall.SIGCONT)
}
