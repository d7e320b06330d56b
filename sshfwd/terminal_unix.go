//go:build linux || darwin

package sshfwd

import (
	"fmt"
	"os"
	"os/signal"
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

// Modes is the terminal's present modes as pty-req wants them (RFC 4254
// section 8), all that OpenSSH sends (ttymodes.c). It is empty but for its end
// where they cannot be read.
func (t *Terminal) Modes() []byte {
	termios, err := getTermios(int(t.in.Fd()))
	if err != nil {
		return []byte{ttyOpEnd}
	}
	return encodeModes(termios)
}

// MakeRaw gives every key to the session, Ctrl-C among them, until restore is
// called. restore may be called twice, and from any goroutine.
func (t *Terminal) MakeRaw() (restore func() error, err error) {
	fd := int(t.in.Fd())
	state, err := term.MakeRaw(fd)
	if err != nil {
		return nil, fmt.Errorf("raw mode of the terminal: %w", err)
	}
	return sync.OnceValue(func() error { return term.Restore(fd, state) }), nil
}

// Resizes sends the terminal's size whenever it has changed (SIGWINCH), or may
// have while the program was suspended (SIGCONT), the newest only. stop ends that and waits for its goroutine.
func (t *Terminal) Resizes() (sizes <-chan WindowSize, stop func()) {
	newest := make(chan WindowSize, 1)
	done := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
	var wg sync.WaitGroup
	wg.Go(func() { t.watchSize(signals, newest, done) })
	return newest, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(done)
		wg.Wait()
	})
}

func (t *Terminal) watchSize(signals <-chan os.Signal, newest chan WindowSize, done <-chan struct{}) {
	for {
		select {
		case <-signals:
			if size, err := t.Size(); err == nil {
				offerSize(newest, size)
			}
		case <-done:
			return
		}
	}
}
