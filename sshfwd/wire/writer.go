package wire

import (
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	// maxWaiting is how much may wait to be written, in bytes, before a Write
	// blocks: a few packets of the greatest size keep the link busy.
	maxWaiting = 128 << 10
	// closeTimeout is how long the kernel has to take what is left at the end. It takes
	// that at once, unless the server has stopped reading.
	closeTimeout = 50 * time.Millisecond
)

// A socket is what a writer needs of a *net.TCPConn.
type socket interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
	CloseRead() error
}

// A writer writes to the connection below SSH. Package ssh writes each packet by a call
// of its own, a large one by two, while it holds the lock that every channel needs. A
// writer buffers them, and its goroutine writes whatever has accumulated, as OpenSSH's
// client does. A lone packet leaves at once.
//
// The next Write returns an error of the connection. Nothing more is received then, so
// that the reader comes to the end.
type writer struct {
	conn socket
	done chan struct{} // closed when run has returned

	mu      sync.Mutex
	changed sync.Cond // signals a change of waiting, closing or err
	waiting []byte
	closing bool
	err     error
}

func newWriter(conn socket) *writer {
	w := &writer{conn: conn, done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write buffers p. It blocks while too much is waiting already.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > maxWaiting && w.err == nil && !w.closing {
		w.changed.Wait()
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case w.closing:
		return 0, net.ErrClosed
	}
	if len(w.waiting) == 0 {
		w.changed.Broadcast()
	}
	w.waiting = append(w.waiting, p...)
	return len(p), nil
}

// run writes until Close, or an error.
func (w *writer) run() {
	defer close(w.done)
	var batch []byte
	for w.await() {
		// Let all goroutines that are ready to write do so first. If there are none,
		// Gosched returns at once.
		runtime.Gosched()
		batch = w.swap(batch)
		if _, err := w.conn.Write(batch); err != nil {
			w.fail(err)
			return
		}
	}
}

// await waits for something to write. It returns false when all is written and the writer
// is to close.
func (w *writer) await() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) == 0 && !w.closing {
		w.changed.Wait()
	}
	return len(w.waiting) > 0
}

// swap returns what is waiting, and buffers from now on in the memory of spare.
func (w *writer) swap(spare []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := w.waiting
	w.waiting = spare[:0]
	w.changed.Broadcast()
	return batch
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.changed.Broadcast()
	w.mu.Unlock()
	_ = w.conn.CloseRead()
}

// close ends run after what is waiting was written, or after closeTimeout.
func (w *writer) close() {
	w.mu.Lock()
	w.closing = true
	w.changed.Broadcast()
	w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(closeTimeout))
	<-w.done
}
