package sshfwd

import (
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

const (
	// mostWaiting is from where on a Write to a wireWriter has to wait, in
	// bytes: a few packets of the greatest size keep the link busy.
	mostWaiting = 128 << 10
	// lastWords is how long Close lets the kernel take what is left. It takes
	// it at once, unless the server has stopped reading.
	lastWords = 50 * time.Millisecond
)

// A wireSocket is what a wireWriter needs of a *net.TCPConn.
type wireSocket interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
	CloseRead() error
}

// A wireWriter writes to the connection below SSH. Package ssh hands over each
// packet by a write of its own, a great one by two, while it holds the lock that
// every channel needs. A wireWriter takes them into a buffer and lets its
// goroutine write what has come together, as OpenSSH's client does. A lone
// packet leaves at once.
//
// An error is told to the next Write; the reader then reads to the end.
type wireWriter struct {
	conn wireSocket
	done chan struct{} // closed when run has returned

	mu      sync.Mutex
	changed sync.Cond // waiting, closing or err has
	waiting []byte
	closing bool
	err     error
}

func newWireWriter(conn wireSocket) *wireWriter {
	w := &wireWriter{conn: conn, done: make(chan struct{})}
	w.changed.L = &w.mu
	go w.run()
	return w
}

// Write takes p over. It waits while too much is waiting already.
func (w *wireWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > mostWaiting && w.err == nil && !w.closing {
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
func (w *wireWriter) run() {
	defer close(w.done)
	var batch []byte
	for w.await() {
		// Whoever is ready to write does so before it is our turn again; if
		// nobody is, it is at once.
		runtime.Gosched()
		batch = w.swap(batch)
		if _, err := w.conn.Write(batch); err != nil {
			w.fail(err)
			return
		}
	}
}

// await returns false when there is nothing left to write.
func (w *wireWriter) await() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) == 0 && !w.closing {
		w.changed.Wait()
	}
	return len(w.waiting) > 0
}

// swap takes what is waiting and gives its room for a spare.
func (w *wireWriter) swap(spare []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := w.waiting
	w.waiting = spare[:0]
	w.changed.Broadcast()
	return batch
}

func (w *wireWriter) fail(err error) {
	w.mu.Lock()
	w.err = err
	w.changed.Broadcast()
	w.mu.Unlock()
	_ = w.conn.CloseRead()
}

// close lets what is waiting be written, unless the server does not take it, and
// ends run.
func (w *wireWriter) close() {
	w.mu.Lock()
	w.closing = true
	w.changed.Broadcast()
	w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(lastWords))
	<-w.done
}
