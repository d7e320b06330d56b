package sshfwd

import (
	"io"
	"sync"
)

// A gate lets writes through to w until it is shut.
type gate struct {
	mu     sync.Mutex
	w      io.Writer // nil discards
	err    error     // of the first write that failed
	closed bool
}

// write returns false if the gate is shut or a write has failed, so that no further write
// is of use.
func (g *gate) write(data []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	if g.w == nil {
		return true
	}
	_, g.err = g.w.Write(data)
	return g.err == nil
}

// hold calls f, and lets no write through meanwhile.
func (g *gate) hold(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// shut lets nothing more through. It returns when no write is in progress.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
