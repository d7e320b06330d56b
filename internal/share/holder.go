package share

import (
	"context"
	"io/fs"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// changeDelay is how long ChangedSoon waits for further changes.
const changeDelay = 200 * time.Millisecond

// lastStatusTime is how long the other processes have to receive the last status.
const lastStatusTime = time.Second

// A Holder is the one process that is a target's bridge, from Hold to Close.
type Holder struct {
	dir      *Dir
	id       string
	snapshot func() Status
	serving  sync.WaitGroup // all goroutines but watch
	watching sync.WaitGroup // watch
	talking  sync.WaitGroup // the connections that still have a status to send

	stopped chan struct{} // closed when somebody has asked the bridge to end
	idle    chan struct{} // has a value when the last lease may have ended
	leased  chan struct{} // has a value after a new lease
	over    chan struct{} // closed by Close
	free    chan struct{} // closed when the lock has been released

	mu      sync.Mutex
	place   place
	closed  bool
	ending  Ending // why the bridge is to stop, or ""
	pinned  bool
	later   *time.Timer // will call Changed; nil if it need not
	leases  int
	conns   map[net.Conn]struct{}
	changed chan struct{} // closed by the next Changed
}

// A place is what a process holds as the bridge of a target.
type place struct {
	lock     *flock.Flock
	alive    *flock.Flock // see notePID
	listener net.Listener
	socket   fs.FileInfo // the listener's; nil on Windows, where it is a pipe
}

// Hold makes this process the bridge of the target, and answers the others. snapshot
// returns the state, without the fields that are about the Holder itself; it is called
// from several goroutines. The error is ErrHeld if another process is the bridge.
func (d *Dir) Hold(id string, snapshot func() Status) (*Holder, error) {
	lock, err := d.lock(id)
	if err != nil {
		return nil, err
	}
	at, err := d.take(id, lock, nil)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	h := &Holder{
		dir: d, id: id, place: at, snapshot: snapshot,
		stopped: make(chan struct{}),
		idle:    make(chan struct{}, 1),
		leased:  make(chan struct{}, 1),
		over:    make(chan struct{}),
		free:    make(chan struct{}),
		conns:   make(map[net.Conn]struct{}),
		changed: make(chan struct{}),
	}
	h.serving.Go(func() { h.accept(at.listener) })
	h.watching.Go(h.watch)
	return h, nil
}

// take makes the rest of a place, whose lock we have. alive is that of our earlier place,
// or nil.
func (d *Dir) take(id string, lock, alive *flock.Flock) (place, error) {
	noted, err := d.notePID(id, os.Getpid(), alive)
	if err != nil {
		return place{}, err
	}
	listener, socket, err := d.listen(id)
	if err != nil && noted != alive {
		_ = noted.Close()
	}
	return place{lock, noted, listener, socket}, err
}

// Changed has the status sent to all who have a Lease or watch: snapshot has changed.
func (h *Holder) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// ChangedSoon is Changed for what changes often: several changes are sent together.
func (h *Holder) ChangedSoon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.later != nil || h.closed {
		return
	}
	h.later = time.AfterFunc(changeDelay, func() {
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

// Pinned reports whether the bridge stays without leases.
func (h *Holder) Pinned() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pinned
}

// Stopped is closed when somebody has asked the bridge to end; Ending then says why.
func (h *Holder) Stopped() <-chan struct{} { return h.stopped }

// Ending is why somebody has asked the bridge to end, or "".
func (h *Holder) Ending() Ending {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending
}

// Leased has a value if there has been a new lease since it was last received from:
// another process could use the bridge now.
func (h *Holder) Leased() <-chan struct{} { return h.leased }

// Abandoned waits until the bridge is not pinned and has had no lease for as long as
// linger. If ctx ends first, it returns its cause.
func (h *Holder) Abandoned(ctx context.Context, linger time.Duration) error {
	for {
		timer := time.NewTimer(linger)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-h.idle: // a lease has begun or ended: start again
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

// Close ends it all: the control socket, the lock and the connections, in this order, so
// that whoever finds the lock free finds nobody listening, and whoever loses a connection
// finds the lock free. Before that, the connections get the last status.
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
	h.dir.removeSocket(h.id, h.place.socket)
	err := h.place.listener.Close()
	close(h.over)
	for conn := range h.conns {
		_ = conn.SetReadDeadline(time.Unix(1, 0)) // too late for a request that has not come yet
	}
	h.mu.Unlock()
	h.watching.Wait()
	hurry := time.AfterFunc(lastStatusTime, h.hangUp)
	h.talking.Wait()
	hurry.Stop()
	_ = h.place.alive.Close()
	if lockErr := h.place.lock.Close(); err == nil {
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

// status returns the whole status, and a channel that is closed when it has changed.
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

// stop notes that the bridge is to end, and why; TakenDown overrides HandedOver. The
// Holder goes on until its owner calls Close.
func (h *Holder) stop(why Ending) {
	h.mu.Lock()
	first := h.ending == ""
	if h.ending != TakenDown {
		h.ending = why
	}
	h.mu.Unlock()
	h.Changed() // before the owner may Close, so that the others are told why
	if first {
		close(h.stopped)
	}
}
