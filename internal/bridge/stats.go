package bridge

import (
	"sync"

	"gpg-bridge/remoteside"
)

// Stats are what bridges have done, one after the other or at a time: a bridge
// that takes another's place goes on counting. Their methods may be called from
// any goroutine.
type Stats struct {
	changed func()

	mu     sync.Mutex
	counts Counts
}

// Counts are what Stats hold at a moment. A client that gives no command, as those do
// which only look whether somebody is there, is no session here.
type Counts struct {
	Sessions int    // now
	Total    uint64 // since the beginning
	Last     *remoteside.Operation
}

// NewStats returns empty Stats. changed is called when there is news, in the
// midst of a conversation: it must not block.
func NewStats(changed func()) *Stats { return &Stats{changed: changed} }

// Counts returns what there is now.
func (s *Stats) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (s *Stats) began() {
	s.note(func(c *Counts) { c.Sessions++; c.Total++ })
}

func (s *Stats) ended(r remoteside.Report) {
	if r.Began {
		s.note(func(c *Counts) { c.Sessions-- })
	}
}

func (s *Stats) operated(o remoteside.Operation) {
	s.note(func(c *Counts) { c.Last = &o })
}

func (s *Stats) note(change func(*Counts)) {
	s.mu.Lock()
	change(&s.counts)
	s.mu.Unlock()
	s.changed()
}
