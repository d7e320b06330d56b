package agentside

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A wire is the machines' end of a connection whose other end a test plays, in
// virtual time. What the test says arrives in the pieces in which it was said;
// what the machines say is taken at once and kept.
type wire struct {
	mu       sync.Mutex
	changed  sync.Cond
	pieces   [][]byte
	end      error // what Read says when the pieces are used up; nil: it waits
	ended    bool  // Read has said so
	endedAt  time.Time
	taken    int // bytes that were read
	heard    []byte
	mute     error // what Write says, if set
	closed   bool
	late     []byte // what was written after the test had seen the end
	seen     bool   // the test has seen the end
	deadline time.Time
}

func newWire() *wire {
	w := &wire{}
	w.changed.L = &w.mu
	return w
}

// say has Read return data.
func (w *wire) say(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(data) > 0 {
		w.pieces = append(w.pieces, data)
	}
	w.changed.Broadcast()
}

// finish has Read return err behind all that was said.
func (w *wire) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		w.end = err
	}
	w.changed.Broadcast()
}

// fail has every Write fail from now on.
func (w *wire) fail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute = syscall.EPIPE
}

// look returns how far it has come: what the machines said, and what is not for
// them any more; how much they have read, and when they read the end.
func (w *wire) look() (heard, late []byte, taken int, ended bool, endedAt time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard, w.late, w.taken, w.ended, w.endedAt
}

// isOver reports whether the machines have closed; from then on each further
// write of theirs is one too many.
func (w *wire) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = w.seen || w.closed
	return w.closed
}

func (w *wire) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.closed:
			return 0, net.ErrClosed
		case !w.deadline.IsZero() && !time.Now().Before(w.deadline):
			return 0, os.ErrDeadlineExceeded
		case len(w.pieces) > 0:
			return w.take(p), nil
		case w.end != nil:
			if !w.ended {
				w.ended, w.endedAt = true, time.Now()
			}
			return 0, w.end
		}
		w.changed.Wait()
	}
}

func (w *wire) take(p []byte) int {
	n := copy(p, w.pieces[0])
	if w.pieces[0] = w.pieces[0][n:]; len(w.pieces[0]) == 0 {
		w.pieces = w.pieces[1:]
	}
	w.taken += n
	return n
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.seen:
		w.late = append(w.late, p...)
		return 0, net.ErrClosed
	case w.closed:
		return 0, net.ErrClosed
	case w.mute != nil:
		return 0, w.mute
	}
	w.heard = append(w.heard, p...)
	return len(p), nil
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.changed.Broadcast()
	return nil
}

// SetDeadline wakes a Read when its time has come.
func (w *wire) SetDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	if !at.IsZero() {
		time.AfterFunc(time.Until(at), w.changed.Broadcast)
	}
	return nil
}

// SetWriteDeadline does nothing: what is written is taken at once.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }
func (w *wire) LocalAddr() net.Addr             { return &net.UnixAddr{} }
func (w *wire) RemoteAddr() net.Addr            { return &net.UnixAddr{} }

var (
	_ net.Conn           = (*wire)(nil)
	_ io.ReadWriteCloser = (*wire)(nil)
)
