package bridge

import (
	"context"
	"slices"
	"time"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/notice"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/remoteside"
)

// mostLeft is how many uses of keys the agent may still have whose clients have gone. Each
// may open a prompt of its own, one after the other, and each costs the agent a descriptor.
// At this number the host's further uses are refused.
const mostLeft = 4

// remindAfter is how long the user is not told the same thing again.
const remindAfter = time.Minute

// reminders bound how often the user is told of an abandoned prompt, of somebody who waits
// behind it, and of a refusal. A host can cause each as often as it likes.
type reminders struct{ open, waits, refused notice.Limit }

// A pendingUse is a use of a key that has no answer yet.
type pendingUse struct {
	asked time.Time // remoteside.Operation.Asked, which identifies it
	began pinentry.Instant
}

// asking notes that a client is about to use a key, and returns "", or the refusal that the
// client gets instead. If the agent still has too many uses whose clients have gone, it first
// waits for p.patience, or until ctx ends: the next look, which follows soon, may show that
// the agent is done with some.
func (p *abandonedPrompts) asking(ctx context.Context, o remoteside.Operation) (answer string) {
	defer p.strays.began()
	defer signal(p.wake)
	room := p.admit(o)
	if room == nil {
		return ""
	}
	waiting, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	for room != nil {
		signal(p.wake)
		select {
		case <-room:
			room = p.admit(o)
		case <-waiting.Done():
			p.mu.Lock()
			defer p.mu.Unlock()
			p.refused = p.refused || ctx.Err() == nil
			return assuan.ErrTimeout
		}
	}
	return ""
}

// admit adds a use to the pending ones. If isFull, it does not, and returns a channel that is
// closed when isFull no longer holds.
func (p *abandonedPrompts) admit(o remoteside.Operation) (room <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isFull() {
		if p.room == nil {
			p.room = make(chan struct{})
		}
		return p.room
	}
	p.pending = append(p.pending, pendingUse{o.Asked, p.now()})
	if o.Left {
		p.leaving++
	}
	return nil
}

// freed wakes those that wait in asking, if there is room now. mu is held.
func (p *abandonedPrompts) freed() {
	if p.room != nil && !p.isFull() {
		close(p.room)
		p.room = nil
	}
}

// isFull reports whether the agent has as many uses as it may whose clients have gone, or
// are about to go. mu is held.
func (p *abandonedPrompts) isFull() bool { return p.leaving+len(p.left) >= mostLeft }

// Leaving notes that the client of a use that has begun will send nothing more.
func (p *abandonedPrompts) Leaving(remoteside.Operation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving++
}

// Operated notes that the use is over, or that nobody waits for its answer any more.
func (p *abandonedPrompts) Operated(o remoteside.Operation) {
	if o.Asked.IsZero() {
		return // the agent never had to ask for it
	}
	p.mu.Lock()
	if i := slices.IndexFunc(p.pending, func(use pendingUse) bool { return use.asked.Equal(o.Asked) }); i >= 0 {
		if o.Unanswered {
			p.left = append(p.left, p.pending[i].began)
			p.gate.hold(1)
		}
		p.pending = slices.Delete(p.pending, i, i+1)
	}
	if o.Left {
		p.leaving--
	}
	p.freed()
	p.mu.Unlock()
	signal(p.wake)
}

// note records what a look has found, and tells the user.
func (p *abandonedPrompts) note(s scene, found verdict) {
	tell := found == promptDoubtful || found == promptAbandoned
	var told []*AbandonedError
	p.mu.Lock()
	p.forget(s)
	before := p.open
	// The next prompt for a client that has gone may open at any moment.
	p.open = tell || p.isFull() || before && (len(p.left) > 0 || found == promptUnsettled)
	waits := tell && !p.waiter && slices.ContainsFunc(s.pending, func(began pinentry.Instant) bool { return p.now().Sub(began) >= firstPromptLook })
	waits = waits && p.news.waits.Allow(remindAfter)
	isNews := tell && !p.told && p.news.open.Allow(remindAfter)
	if isNews || waits {
		told = append(told, &AbandonedError{Waits: waits})
	}
	if found != promptUnsettled {
		p.told, p.waiter = tell && (p.told || isNews || waits), tell && (p.waiter || waits)
	}
	if p.refused && p.news.refused.Allow(remindAfter) {
		told = append(told, &AbandonedError{Refused: true})
	}
	p.refused = false
	changes := before != p.open
	p.mu.Unlock()
	if changes && p.changed != nil {
		p.changed()
	}
	for _, err := range told {
		p.warn(err)
	}
}

// forget drops the uses that the agent was done with when a look began. It keeps the oldest,
// since none of our prompts is older than these. mu is held.
func (p *abandonedPrompts) forget(s scene) {
	slices.Sort(s.left)
	for _, began := range s.left[s.stays():] {
		if i := slices.Index(p.left, began); i >= 0 {
			p.left = slices.Delete(p.left, i, i+1)
			p.gate.hold(-1)
		}
	}
	p.freed()
}
