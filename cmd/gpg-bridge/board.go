package main

import (
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
)

// A board is what this process tells others of its bridge. Its methods may be
// called from any goroutine.
type board struct {
	mu     sync.Mutex
	status share.Status
	bridge *bridge.Bridge
	holder *share.Holder
}

func newBoard(t target, kind share.Kind, agent string) *board {
	return &board{status: share.Status{
		Target: t.name, Address: t.address, Kind: kind, Agent: agent,
		State: share.Connecting, Since: time.Now(),
	}}
}

// hold makes this process the bridge of the target; see [share.Dir.Hold].
func (b *board) hold(dir *share.Dir, id string) (*share.Holder, error) {
	holder, err := dir.Hold(id, b.snapshot)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.holder = holder
	b.mu.Unlock()
	return holder, nil
}

func (b *board) snapshot() share.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.status
	if b.bridge != nil {
		status.RemoteSocket = b.bridge.Path()
		status.Sessions = b.bridge.Load().Sessions
	}
	return status
}

// set notes a state, with the bridge if it is up.
func (b *board) set(state share.State, up *bridge.Bridge) {
	b.change(func(s *share.Status) {
		if state != s.State {
			s.State, s.Since = state, time.Now()
		}
		b.bridge = up
	})
}

// problem notes what went wrong.
func (b *board) problem(err error) {
	b.change(func(s *share.Status) {
		s.Problem = &share.Problem{Text: oneLine(err.Error()), Remedy: oneLine(hintOf(err)), At: time.Now()}
	})
}

// reconnected counts a connection that was made again.
func (b *board) reconnected() { b.change(func(s *share.Status) { s.Reconnects++ }) }

func (b *board) change(change func(*share.Status)) {
	b.mu.Lock()
	change(&b.status)
	holder := b.holder
	b.mu.Unlock()
	if holder != nil {
		holder.Changed()
	}
}
