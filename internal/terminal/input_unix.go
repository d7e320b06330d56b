//go:build linux || darwin

package terminal

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// freeInterval is the time between two checks whether somebody else still reads the
// terminal.
const freeInterval = 25 * time.Millisecond

// A terminalReader reads a terminal until it is closed, and not a key more: what is typed
// after a session is for whoever reads the terminal then. So is what is typed while the
// terminal is not free.
type terminalReader struct {
	in           *os.File
	isFree       func() bool
	wake, closer *os.File // the two ends of a pipe; Close closes closer, which wakes Read
	close        func() error
	closed       bool // Read has seen it; Read's
}

func terminalInput(in *os.File, isFree func() bool) io.ReadCloser {
	if isFree == nil {
		isFree = func() bool { return true }
	}
	wake, closer, err := os.Pipe()
	if err != nil {
		return io.NopCloser(in)
	}
	r := &terminalReader{in: in, isFree: isFree, wake: wake, closer: closer}
	r.close = sync.OnceValue(closer.Close)
	return r
}

// Read returns io.EOF after Close, which may be called while it waits. The Read that
// notices Close closes the pipe's other end.
func (r *terminalReader) Read(p []byte) (int, error) {
	for !r.closed {
		hasKeys, err := r.poll(true, -1)
		switch {
		case err != nil:
			return 0, err
		case !hasKeys:
		case !r.isFree():
			_, err = r.poll(false, freeInterval)
		default:
			n, err := r.in.Read(p)
			if n == 0 || r.isFree() {
				return n, err
			}
			// Somebody else has begun to read the terminal meanwhile. These keys may be
			// a passphrase: rather lose them than give them to the host.
			clear(p[:n])
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// poll waits for Close, and if wantKeys, for keys; a wait of -1 has no limit. A file that
// cannot be polled counts as having keys.
func (r *terminalReader) poll(wantKeys bool, wait time.Duration) (hasKeys bool, err error) {
	fds := []unix.PollFd{{Fd: int32(r.wake.Fd()), Events: unix.POLLIN}, {Fd: int32(r.in.Fd()), Events: unix.POLLIN}}
	if !wantKeys {
		fds = fds[:1]
	}
	milliseconds := -1
	if wait >= 0 {
		milliseconds = int(wait.Milliseconds())
	}
	if _, err := unix.Poll(fds, milliseconds); err != nil {
		if errors.Is(err, unix.EINTR) {
			err = nil
		}
		return false, err
	}
	if fds[0].Revents != 0 {
		r.closed = true
		return false, r.wake.Close()
	}
	return wantKeys && fds[1].Revents != 0, nil
}

func (r *terminalReader) Close() error { return r.close() }
