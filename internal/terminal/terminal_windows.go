package terminal

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
	// sizeInterval is the time between two checks of the console's size: it sends
	// no signal, and its own events would have to be read from the input.
	sizeInterval = 250 * time.Millisecond

	// codePageUTF8 is CP_UTF8.
	codePageUTF8 = 65001

	// ctrlZ is the key that Go's console reader turns into io.EOF (readConsole in
	// internal/poll/fd_windows.go).
	ctrlZ = 0x1a

	// maxCtrlZ is how often in a row io.EOF is taken for that key. A console that has
	// really ended returns io.EOF for ever.
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

// Modes is only TtyOpEnd: a console has no termios.
func (t *Terminal) Modes() []byte { return []byte{TtyOpEnd} }

// An undoFunc takes a setting of the console back.
type undoFunc func() error

// MakeRaw gives every key to the session, special ones as escape sequences, has the
// console understand escape sequences, and sets both its code pages to UTF-8. restore
// undoes all of it; it may be called twice, and from any goroutine.
func (t *Terminal) MakeRaw() (restore func() error, err error) {
	var undo []undoFunc
	restoreAll := func() error {
		var all error
		for i := len(undo) - 1; i >= 0; i-- {
			all = errors.Join(all, undo[i]())
		}
		return all
	}
	for _, set := range []func() (undoFunc, error){t.rawInput, t.escapesOutput, utf8Input, utf8Output} {
		restore, err := set()
		if err != nil {
			_ = restoreAll()
			return nil, fmt.Errorf("raw mode of the console: %w", err)
		}
		undo = append(undo, restore)
	}
	return sync.OnceValue(restoreAll), nil
}

func (t *Terminal) rawInput() (undoFunc, error) {
	fd := int(t.in.Fd())
	state, err := term.MakeRaw(fd) // sets ENABLE_VIRTUAL_TERMINAL_INPUT too
	if err != nil {
		return nil, err
	}
	return func() error { return term.Restore(fd, state) }, nil
}

// escapesOutput does nothing where the output is not the console.
func (t *Terminal) escapesOutput() (undoFunc, error) {
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

func utf8Input() (undoFunc, error) {
	return codePage(windows.GetConsoleCP, windows.SetConsoleCP)
}

func utf8Output() (undoFunc, error) {
	return codePage(windows.GetConsoleOutputCP, windows.SetConsoleOutputCP)
}

func codePage(get func() (uint32, error), set func(uint32) error) (undoFunc, error) {
	old, err := get()
	if err != nil {
		return nil, err
	}
	if err := set(codePageUTF8); err != nil {
		return nil, err
	}
	return func() error { return set(old) }, nil
}

// TranslateEnter does nothing: no other program asks on the console.
func (t *Terminal) TranslateEnter() error { return nil }

// Resizes sends the console's size whenever it has changed. Only the newest size is kept
// for the receiver. stop ends it and waits for its goroutine.
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
				replaceSize(newest, size)
			}
		case <-done:
			return
		}
	}
}

// A consoleInput turns the io.EOF that Go makes of Ctrl-Z back into that key.
type consoleInput struct {
	in   io.Reader
	ends int // io.EOFs in a row
}

func terminalInput(in *os.File, _ func() bool) io.ReadCloser {
	return io.NopCloser(&consoleInput{in: in})
}

func (c *consoleInput) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) || len(p) == 0 {
		c.ends = 0
		return n, err
	}
	if c.ends++; c.ends > maxCtrlZ {
		return 0, io.EOF
	}
	p[0] = ctrlZ
	return 1, nil
}
