package share

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// soon is how long news may wait that many of may come at once.
const soon = 200 * time.Millisecond

// farewell is how long those who watch have to take the last status.
const farewell = time.Second

// A Holder is the one process that is a target's bridge, from Hold to Close.
type Holder struct {
	dir      *Dir
	id       string
	lock     *flock.Flock
	listener net.Listener
	snapshot func() Status
	serving  sync.WaitGroup // all goroutines
	talking  sync.WaitGroup // the connections that have not said their last

	stopped chan struct{} // closed when somebody asked for the end
	idle    chan struct{} // has a value when the last lease may have gone
	leased  chan struct{} // has a value when there was a new lease
	over    chan struct{} // closed by Close
	free    chan struct{} // closed when the lock is

	mu      sync.Mutex
	closed  bool
	ending  Ending // why the bridge is to stop, or ""
	pinned  bool
	later   *time.Timer // will tell of a change; nil: there is none to tell of
	leases  int
	conns   map[net.Conn]struct{}
	changed chan struct{} // closed by the next Changed
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
		leased:  make(chan struct{}, 1),
		over:    make(chan struct{}),
		free:    make(chan struct{}),
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

// ChangedSoon is Changed for what happens often: several are told as one.
func (h *Holder) ChangedSoon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.later != nil || h.closed {
		return
	}
	h.later = time.AfterFunc(soon, func() {
		h.mu.Lock()
		h.later = nil
		h.mu.Unlock()
		h.Changed()
	})
}

// Pin makes the bridge stay without leases.
func (h *Holder) Pin() {
	h.mu.Lock()
	h.pinned = true
	h.mu.Unlock()
	h.Changed()
}

// Pinned reports whether it shall stay without leases.
func (h *Holder) Pinned() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinned
}

// Stopped is closed when somebody has asked the bridge to end; Ending is then
// why.
func (h *Holder) Stopped() <-chan struct{} { return h.stopped }

// Ending is why somebody has asked the bridge to end, or "".
func (h *Holder) Ending() Ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending
}

// Leased has a value when there was a new lease since it was last looked at:
// another process could use the bridge now.
func (h *Holder) Leased() <-chan struct{} { return h.leased }

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

// Close ends the holding: the control socket, the lock and the connections, in
// this order, so that who finds the lock free finds nobody listening, and who
// loses a connection finds the lock free. Those who watch get the last status
// before.
func (h *Holder) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	if h.later != nil {
		h.later.Stop()
	}
	err := h.listener.Close() // removes the socket
	close(h.over)
	for conn := range h.conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // a request that has not come yet is too late
	}
	h.mu.Unlock()
	hurry := time.AfterFunc(farewell, h.hangUp)
	h.talking.Wait()
	hurry.Stop()
	_ = h.dir.files.Remove(h.id + socketSuffix)
	if lockErr := h.lock.Close(); err == nil {
		err = lockErr
	}
	close(h.free)
	h.serving.Wait()
	return err
}

func (h *Holder) hangUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for conn := range h.conns {
		_ = conn.Close()
	}
}

// status is the whole status, and what is closed when there is a newer one.
func (h *Holder) status() (Status, <-chan struct{}) {
	h.mu.Lock()
	leases, pinned, ending, changed := h.leases, h.pinned, h.ending, h.changed
	h.mu.Unlock()
	status := h.snapshot()
	status.Version, status.ID, status.PID = Version, h.id, os.Getpid()
	status.Leases, status.Pinned = leases, pinned
	if ending != "" {
		status.State, status.Ending = Stopping, ending
	}
	return status, changed
}

// leaseTaken counts a lease, for which the bridge stays.
func (h *Holder) leaseTaken() {
	h.addLease(1)
	signal(h.leased)
}

func (h *Holder) leaseGone() { h.addLease(-1) }

func (h *Holder) addLease(n int) {
	h.mu.Lock()
	h.leases += n
	h.mu.Unlock()
	signal(h.idle)
	h.Changed()
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// stop notes that the bridge is to end, and why; that it is to be down counts
// most. It goes on until its owner closes it.
func (h *Holder) stop(why Ending) {
	h.mu.Lock()
	first := h.ending == ""
	if h.ending != TakenDown {
		h.ending = why
	}
	h.mu.Unlock()
	if first {
		close(h.stopped)
	}
	h.Changed()
}
