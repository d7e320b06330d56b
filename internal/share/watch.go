package share

import (
	"errors"
	"time"

	"github.com/gofrs/flock"
)

const (
	// eventPause is how long a holder waits after an event in its directory before it checks
	// its files: whoever removes the whole directory has then finished.
	eventPause = time.Second / 10

	// checkSoon is the time until the next check after something was missing.
	checkSoon = time.Second

	// checkInterval is the time between two checks where there are no events, and
	// watchedInterval where there are: for the directory, but not for all above it.
	checkInterval   = 5 * time.Second
	watchedInterval = 30 * time.Second

	// lockTries is how often it tries to lock: whoever checks whether a lock is free has it
	// for a moment.
	lockTries = 10
)

// watch makes sure, until the holder is closed, that others find it: a clean-up of
// temporary files, or the end of a log-in, may remove its directory while it lives on.
func (h *Holder) watch() {
	events := newDirWatch(h.dir.path)
	defer events.close()
	for wait := time.Duration(0); ; {
		select {
		case <-h.over:
			return
		case <-time.After(wait):
		case <-events.changed:
			select {
			case <-h.over:
				return
			case <-time.After(eventPause):
			}
		}
		watched := events.follow() // before the check, so that nothing after it is missed
		switch found := h.restore(); {
		case !found:
			wait = checkSoon
		case watched:
			wait = watchedInterval
		default:
			wait = checkInterval
		}
	}
}

// restore makes whatever is missing again, and reports whether nothing was. If another
// process has the lock that others find, that is the bridge, and this one makes way: there
// must not be two. What cannot be made now, because the directory itself is gone, may be at
// the next check.
func (h *Holder) restore() (found bool) {
	h.mu.Lock()
	at := h.place
	h.mu.Unlock()
	haveLock := h.dir.isAt(at.lock, h.id)
	if haveLock && h.dir.isSocket(h.id, at.socket) {
		return true
	}
	lock := at.lock
	if !haveLock {
		var err error
		if lock, err = h.lockAgain(); err != nil {
			if errors.Is(err, ErrHeld) {
				h.stop(HandedOver)
			}
			return false
		}
	}
	if !h.move(lock) && !haveLock {
		_ = lock.Close()
	}
	return false
}

// lockAgain takes the lock at the path where others look for it.
func (h *Holder) lockAgain() (lock *flock.Flock, err error) {
	for range lockTries {
		if lock, err = h.dir.lock(h.id); !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-time.After(2 * firstRetry):
		case <-h.over:
			return nil, err
		}
	}
	return nil, err
}

// move replaces the holder's place by one with this lock, which we hold, and a new socket.
// It reports false if that is not possible.
func (h *Holder) move(lock *flock.Flock) bool {
	h.mu.Lock()
	before := h.place
	h.mu.Unlock()
	at, err := h.dir.take(h.id, lock, before.alive)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		h.dir.removeSocket(h.id, at.socket)
		_ = at.listener.Close()
		if at.alive != before.alive {
			_ = at.alive.Close()
		}
		return false
	}
	_ = before.listener.Close()
	if before.alive != at.alive {
		_ = before.alive.Close()
	}
	if before.lock != lock {
		_ = before.lock.Close()
	}
	h.place = at
	h.serving.Go(func() { h.accept(at.listener) })
	return true
}
