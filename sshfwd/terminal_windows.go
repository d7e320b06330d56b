package sshfwd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

const (
	// sizeInterval is how often the console is asked for its size: it sends
	// no signal, and its own events would have to be read with the input.
	sizeInterval = 250 * time.Millisecond

	// codePageUTF8 is CP_UTF8.
	codePageUTF8 = 65001

	// ctrlZ is what Go's console reader takes for the end of the file
	// (readConsole in internal/poll/fd_windows.go).
	ctrlZ = 0x1a

	// maxCtrlZ is how many ends of the file in a row are keys. A key that is
	// held repeats, but with others of its kind; a console that has really
	// ended ends without end.
	maxCtrlZ = 64
)

// Size is the size of the console's window in characters; it has no pixels.
func (t *Terminal) Size() (WindowSize, error) {
	cols, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil {
		return WindowSize{}, fmt.Errorf("size of the console: %w", err)
	}
	return WindowSize{Cols: uint32(cols), Rows: uint32(rows)}, nil
}

// Modes is empty but for its end: a console has no termios.
func (t *Terminal) Modes() []byte { return []byte{ttyOpEnd} }

// A consoleSetting is undone by calling it.
type consoleSetting func() error

// MakeRaw gives every key to the session, as escape sequences where it needs
// them, lets the console understand escape sequences, and sets both its code
// pages to UTF-8. restore undoes all of it; it may be called twice, and from
// any goroutine.
func (t *Terminal) MakeRaw() (restore func() error, err error) {
	var undo []consoleSetting
	restoreAll := func() error {
		var all error
		for i := len(undo) - 1; i >= 0; i-- {
			all = errors.Join(all, undo[i]())
		}
		return all
	}
	for _, set := range []func() (consoleSetting, error){t.rawInput, t.escapesOutput, utf8Input, utf8Output} {
		setting, err := set()
		if err != nil {
			_ = restoreAll()
			return nil, fmt.Errorf("raw mode of the console: %w", err)
		}
		undo = append(undo, setting)
	}
	return sync.OnceValue(restoreAll), nil
}

func (t *Terminal) rawInput() (consoleSetting, error) {
	fd := int(t.in.Fd())
	state, err := term.MakeRaw(fd) // sets ENABLE_VIRTUAL_TERMINAL_INPUT too
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(fd, state) }, nil
}

// escapesOutput does nothing where the output is not the console.
func (t *Terminal) escapesOutput() (consoleSetting, error) {
	handle := windows.Handle(t.out.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(handle, &mode); err != nil {
		return func() error { return nil }, nil
	}
	wanted := mode | windows.ENABLE_PROCESSED_OUTPUT |
		windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING | windows.DISABLE_NEWLINE_AUTO_RETURN
	if err := windows.SetConsoleMode(handle, wanted); err != nil {
		return nil, err
	}
	return func() error { return windows.SetConsoleMode(handle, mode) }, nil
}

func utf8Input() (consoleSetting, error) {
	return codePage(windows.GetConsoleCP, windows.SetConsoleCP)
}

func utf8Output() (consoleSetting, error) {
	return codePage(windows.GetConsoleOutputCP, windows.SetConsoleOutputCP)
}

func codePage(get func() (uint32, error), set func(uint32) error) (consoleSetting, error) {
	old, err := get()
	if err != nil {
		return nil, err
	}
	if err := set(codePageUTF8); err != nil {
		return nil, err
	}
	return func() error { return set(old) }, nil
}

// Resizes sends the console's size whenever it has changed, the newest only.
// stop ends that and waits for its goroutine.
func (t *Terminal) Resizes() (sizes <-chan WindowSize, stop func()) {
	newest := make(chan WindowSize, 1)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { t.watchSize(newest, done) })
	return newest, sync.OnceFunc(func() {
		close(done)
		wg.Wait()
	})
}

func (t *Terminal) watchSize(newest chan WindowSize, done <-chan struct{}) {
	ticker := time.NewTicker(sizeInterval)
	defer ticker.Stop()
	last, _ := t.Size()
	for {
		select {
		case <-ticker.C:
			if size, err := t.Size(); err == nil && size != last {
				last = size
				offerSize(newest, size)
			}
		case <-done:
			return
		}
	}
}

// A consoleInput turns what Go takes for the end of the file back into the
// key that it was.
type consoleInput struct {
	in    io.Reader
	inRow int
}

func terminalInput(in *os.File) io.ReadCloser { return io.NopCloser(&consoleInput{in: in}) }

func (c *consoleInput) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) || len(p) == 0 {
		c.inRow = 0
		return n, err
	}
	if c.inRow++; c.inRow > maxCtrlZ {
		return 0, io.EOF
	}
	p[0] = ctrlZ
	return 1, nil
}
