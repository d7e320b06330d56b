package bridge

import (
	"sync"

	"github.com/google/uuid"

	"gpg-bridge/internal/pinentry"
	"gpg-bridge/remoteside"
)

// Stats counts what bridges have done, one after the other or concurrently: a bridge that
// replaces another goes on counting. It observes the bridges' sessions. Its methods may be
// called from any goroutine.
type Stats struct {
	remoteside.NopObserver
	changed func()

	mu     sync.Mutex
	counts Counts
	left   []pinentry.Instant // see abandonedPrompts; kept here between two bridges
}

// Counts are the counts at one moment. A client that sends no command, as one that only
// checks whether somebody is there, does not count as a session.
type Counts struct {
	Sessions int    // now
	Total    uint64 // since the beginning
	Pending  int    // operations that the agent has not answered yet
	Last     *remoteside.Operation
}

// NewStats returns empty Stats. changed is called whenever a count changes, in the middle of
// a conversation: it must not block.
func NewStats(changed func()) *Stats { return &Stats{changed: changed} }

// Counts returns what there is now.
func (s *Stats) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Began counts one more session.
func (s *Stats) Began(uuid.UUID) {
	s.note(func(c *Counts) { c.Sessions++; c.Total++ })
}

// Ended counts one session less.
func (s *Stats) Ended(r remoteside.Report) {
	if r.Began {
		s.note(func(c *Counts) { c.Sessions-- })
	}
}

// Operating counts a use of a key as under way.
func (s *Stats) Operating(remoteside.Operation) {
	s.note(func(c *Counts) { c.Pending++ })
}

// Operated remembers the use of a key.
func (s *Stats) Operated(o remoteside.Operation) {
	s.note(func(c *Counts) { c.Pending--; c.Last = &o })
}

// leaveOpen keeps the uses that a bridge has left, for the next one, which gets them from
// leftOpen.
func (s *Stats) leaveOpen(left []pinentry.Instant) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = left
	}
}

func (s *Stats) leftOpen() []pinentry.Instant {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

func (s *Stats) note(change func(*Counts)) {
	s.mu.Lock()
	change(&s.counts)
	s.mu.Unlock()
	s.changed()
}
