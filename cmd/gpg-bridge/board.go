package main

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
	"gpg-bridge/remoteside"
)

// A board is what this process tells others of its bridge. Its methods may be
// called from any goroutine.
type board struct {
	stats *bridge.Stats // of all bridges of this process, one after the other

	mu     sync.Mutex
	status share.Status
	bridge *bridge.Bridge
	holder *share.Holder
}

func newBoard(t target, kind share.Kind, agent string) *board {
	b := &board{status: share.Status{
		Target: t.name, Address: t.address, Kind: kind, Agent: agent,
		State: share.Connecting, Since: time.Now(),
	}}
	b.stats = bridge.NewStats(b.changedSoon)
	return b
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
	}
	counts := b.stats.Counts()
	status.Sessions, status.SessionsTotal = counts.Sessions, counts.Total
	if counts.Last != nil {
		status.LastOperation = operationOf(counts.Last)
	}
	return status
}

// operationOf puts an operation into words.
func operationOf(o *remoteside.Operation) *share.Operation {
	outcome := share.OutcomeOK
	switch {
	case o.Unanswered:
		outcome = share.OutcomeUnanswered
	case o.Code != 0 || o.Words != "":
		outcome = oneLine(cmp.Or(o.Words, fmt.Sprintf("error %d", o.Code)))
	}
	return &share.Operation{
		Verb: o.Verb, Key: strings.ToUpper(o.Keygrip), At: o.At, Millis: o.Duration.Milliseconds(),
		Outcome: outcome, Code: o.Code,
	}
}

// set notes a state, with the bridge if it is up.
func (b *board) set(state share.State, up *bridge.Bridge) {
	b.change(func(s *share.Status) {
		if state != s.State {
			s.State, s.Since = state, time.Now()
		}
		if state == share.Waiting { // without a connection
			s.SharedBy = 0
		}
		b.bridge = up
	})
}

// agent notes where the local agent was found.
func (b *board) agent(path string) {
	if path != "" {
		b.change(func(s *share.Status) { s.Agent = path })
	}
}

// sharedBy notes whose connection is used: that of the user's ssh with this
// process ID, or, 0, the bridge's own.
func (b *board) sharedBy(pid int) { b.change(func(s *share.Status) { s.SharedBy = pid }) }

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

// changedSoon tells of what may happen a thousand times in a second.
func (b *board) changedSoon() {
	b.mu.Lock()
	holder := b.holder
	b.mu.Unlock()
	if holder != nil {
		holder.ChangedSoon()
	}
}
