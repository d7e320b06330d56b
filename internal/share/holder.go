package share

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// A Holder is the one process that is a target's bridge, from Hold to Close.
type Holder struct {
	dir      *Dir
	id       string
	lock     *flock.Flock
	listener net.Listener
	snapshot func() Status
	serving  sync.WaitGroup

	stopped chan struct{} // closed when somebody asked for the end
	idle    chan struct{} // has a value when the last lease may have gone

	mu       sync.Mutex
	closed   bool
	stopping bool
	pinned   bool
	leases   int
	conns    map[net.Conn]struct{}
	changed  chan struct{} // closed by the next Changed
}

// Hold makes this process the bridge of the target, and answers to the others:
// snapshot gives the state, without the fields that are about the holding itself;
// it is called from several goroutines. The error is ErrHeld if another process
// is the bridge.
func (d *Dir) Hold(id string, snapshot func() Status) (*Holder, error) {
	lock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	listener, err := d.listen(id)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	h := &Holder{
		dir: d, id: id, lock: lock, listener: listener, snapshot: snapshot,
		stopped: make(chan struct{}),
		idle:    make(chan struct{}, 1),
		conns:   make(map[net.Conn]struct{}),
		changed: make(chan struct{}),
	}
	h.serving.Go(h.accept)
	return h, nil
}

// Changed tells those who watch that snapshot has news.
func (h *Holder) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// Pin makes the bridge stay without leases.
func (h *Holder) Pin() {
	h.mu.Lock()
	h.pinned = true
	h.mu.Unlock()
	h.Changed()
}

// Stopped is closed when somebody has asked the bridge to end.
func (h *Holder) Stopped() <-chan struct{} { return h.stopped }

// Abandoned waits until the bridge is not pinned and there has been no lease for
// as long as linger, or until ctx ends; the error is then its cause.
func (h *Holder) Abandoned(ctx context.Context, linger time.Duration) error {
	for {
		timer := time.NewTimer(linger)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-h.idle: // one came and went: from the beginning
			timer.Stop()
			continue
		case <-timer.C:
		}
		if h.isIdle() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.idle:
		}
	}
}

func (h *Holder) isIdle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leases == 0 && !h.pinned
}

// Close ends the holding: every connection, the control socket and the lock, in
// this order, so that who finds the lock free finds nobody listening.
func (h *Holder) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	err := h.listener.Close() // removes the socket
	for conn := range h.conns {
		_ = conn.Close()
	}
	h.mu.Unlock()
	h.serving.Wait()
	_ = h.dir.files.Remove(h.id + socketSuffix)
	if lockErr := h.lock.Close(); err == nil {
		err = lockErr
	}
	return err
}

// status is the whole status, and what is closed when there is a newer one.
func (h *Holder) status() (Status, <-chan struct{}) {
	h.mu.Lock()
	leases, pinned, stopping, changed := h.leases, h.pinned, h.stopping, h.changed
	h.mu.Unlock()
	status := h.snapshot()
	status.Version, status.ID, status.PID = Version, h.id, os.Getpid()
	status.Leases, status.Pinned = leases, pinned
	if stopping {
		status.State = Stopping
	}
	return status, changed
}

// addLease counts a lease, for which the bridge stays.
func (h *Holder) addLease(n int) {
	h.mu.Lock()
	h.leases += n
	h.mu.Unlock()
	select {
	case h.idle <- struct{}{}:
	default:
	}
	h.Changed()
}

// stop notes that the bridge is to end. It goes on until its owner closes it.
func (h *Holder) stop() {
	h.mu.Lock()
	first := !h.stopping
	h.stopping = true
	h.mu.Unlock()
	if first {
		close(h.stopped)
		h.Changed()
	}
}
