package sshfwd

import (
	"sync"
	"time"
)

// handshakeClock ends a handshake that takes too long. It is stopped while a human or a
// token is waited for, and starts anew afterwards.
type handshakeClock struct {
	expire func() // closes the connection

	mu      sync.Mutex
	limit   time.Duration
	timer   *time.Timer
	expired bool
	stopped bool
}

func newHandshakeClock(limit time.Duration, expire func()) *handshakeClock {
	c := &handshakeClock{limit: limit, expire: expire}
	c.timer = time.AfterFunc(limit, c.fire)
	return c
}

func (c *handshakeClock) fire() {
	c.mu.Lock()
	c.expired = !c.stopped
	c.mu.Unlock()
	if c.hasExpired() {
		c.expire()
	}
}

func (c *handshakeClock) hasExpired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expired
}

// pause stops the clock while it runs f.
func (c *handshakeClock) pause(f func()) {
	c.timer.Stop()
	defer c.restart(0)
	f()
}

// restart starts the clock anew, with another limit unless that is 0.
func (c *handshakeClock) restart(limit time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 {
		c.limit = limit
	}
	if !c.stopped && !c.expired {
		c.timer.Reset(c.limit)
	}
}

// stop stops the clock for good.
func (c *handshakeClock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
