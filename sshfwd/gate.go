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

// write returns false when nothing more needs to be written.
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

// hold calls f and writes nothing meanwhile.
func (g *gate) hold(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// shut returns when no write is under way.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}
