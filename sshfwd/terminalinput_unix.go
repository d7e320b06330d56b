//go:build linux || darwin

package sshfwd

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A terminalReader reads a terminal until it is closed, and not a key more:
// what is typed after a session belongs to who reads the terminal then.
type terminalReader struct {
	in           *os.File
	wake, closer *os.File // a pipe: at its end the reading is over
	close        func() error
	over         bool // owned by Read
}

func terminalInput(in *os.File) io.ReadCloser {
	wake, closer, err := os.Pipe()
	if err != nil {
		return io.NopCloser(in)
	}
	r := &terminalReader{in: in, wake: wake, closer: closer}
	r.close = sync.OnceValue(closer.Close)
	return r
}

// Read returns io.EOF after Close, which may be called while it waits. The
// pipe's reading end is closed by the Read that finds it so.
func (r *terminalReader) Read(p []byte) (int, error) {
	for !r.over {
		fds := []unix.PollFd{
			{Fd: int32(r.in.Fd()), Events: unix.POLLIN},
			{Fd: int32(r.wake.Fd()), Events: unix.POLLIN},
		}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case fds[1].Revents != 0:
			r.over = true
			_ = r.wake.Close()
		case fds[0].Revents != 0: // or no terminal that can be polled
			return r.in.Read(p)
		}
	}
	return 0, io.EOF
}

func (r *terminalReader) Close() error { return r.close() }
