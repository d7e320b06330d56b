package background

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gpg-bridge/internal/share"
)

// A Watcher follows all bridges, including those that start later. Its methods are called by
// its owner only; it has one goroutine for each bridge.
type Watcher struct {
	ctx    context.Context
	cancel context.CancelFunc
	dir    *share.Dir
	News   chan share.Status
	known  map[string]share.Status // by ID
	Last   *share.Status           // the latest status, until the owner has shown it
	wg     sync.WaitGroup

	mu       sync.Mutex
	followed map[string]bool // by ID
}

// NewWatcher returns a Watcher that already has the status of all bridges.
func NewWatcher(ctx context.Context, dir *share.Dir) (*Watcher, error) {
	known := map[string]share.Status{}
	all, err := Statuses(ctx, dir)
	for _, status := range all {
		known[status.ID] = status
	}
	if silent := new(share.SilentError); err != nil && !errors.As(err, &silent) {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Watcher{
		ctx: ctx, cancel: cancel, dir: dir, News: make(chan share.Status),
		known: known, followed: map[string]bool{},
	}, nil
}

// Stop returns when its goroutines have ended.
func (w *Watcher) Stop() {
	w.cancel()
	w.wg.Wait()
}

// Look follows the bridges that are not followed yet.
func (w *Watcher) Look() error {
	ids, err := w.dir.IDs()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !w.begin(id) {
			continue
		}
		lease, err := w.dir.Watch(w.ctx, id)
		if err != nil {
			w.end(id)
			delete(w.known, id)
			continue
		}
		w.wg.Go(func() {
			defer w.end(id)
			w.follow(lease)
		})
	}
	return nil
}

func (w *Watcher) begin(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := !w.followed[id]
	w.followed[id] = true
	return begun
}

func (w *Watcher) end(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.followed, id)
}

// follow passes on a bridge's statuses, and at its end that it has gone.
func (w *Watcher) follow(lease *share.Lease) {
	defer lease.Close()
	var last share.Status
	for {
		status, err := lease.Next()
		if err != nil {
			break
		}
		last = status
		w.tell(status)
	}
	if last.ID != "" {
		last.State, last.Since = share.Gone, time.Now()
		w.tell(last)
	}
}

func (w *Watcher) tell(status share.Status) {
	select {
	case w.News <- status:
	case <-w.ctx.Done():
	}
}

// Note records a status.
func (w *Watcher) Note(status share.Status) {
	w.Last = &status
	if status.State == share.Gone {
		delete(w.known, status.ID)
		return
	}
	w.known[status.ID] = status
}

// All returns the latest status of each bridge.
func (w *Watcher) All() []share.Status {
	var all []share.Status
	for _, status := range w.known {
		all = append(all, status)
	}
	slices.SortFunc(all, Compare)
	return all
}
