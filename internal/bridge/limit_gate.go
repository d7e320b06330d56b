package bridge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gpg-bridge/agentside"
	"gpg-bridge/remoteside"
)

const (
	// fewConversations: an agent that does not take one more while it has
	// fewer of ours than this is not overloaded; something else is wrong.
	fewConversations = 16

	// gatePatience is how long a client waits at a gate that has been lowered
	// and through which nobody comes or goes. Then it tries once more, for the
	// last time.
	gatePatience = 30 * time.Second
)

// A gate bounds the conversations with one agent to what the agent can take.
// What that is the agent cannot be asked: a restricted connection may not know
// its process id, and others use its descriptors too. So the gate learns. An
// attempt that fails while many conversations are open lowers the bound below
// their number, and waits in the queue, before all others, for another to end;
// many conversations begun raise it by one. The zero value is ready.
//
// A client at the gate is accepted and not yet greeted. gpg has no timeout
// there.
type gate struct {
	mu          sync.Mutex
	lowered     int       // how far below mostConversations the bound is
	lowerings   int       // how often it was lowered
	credit      int       // conversations begun since it was last changed
	open        int       // places taken: conversations, and attempts at one
	established int       // conversations
	moved       time.Time // when one last began or ended
	queue       []chan struct{}
}

// connect opens a conversation by dial when there is a place for it. Closing
// the conversation gives the place back. ctx ends the waiting and the dialling;
// dial's error is returned when load is not the likely cause, or after
// gatePatience.
func (g *gate) connect(ctx context.Context, dial func(context.Context) (remoteside.Agent, error)) (remoteside.Agent, error) {
	for first := true; ; first = false {
		last, err := g.enter(ctx, first)
		if err != nil {
			return nil, err
		}
		before := g.attempt()
		agent, err := dial(ctx)
		if err == nil {
			g.begin()
			return &conversation{Agent: agent, leave: sync.OnceFunc(g.end)}, nil
		}
		loaded := g.fail(before)
		if last || !loaded || ctx.Err() != nil || errors.Is(err, agentside.ErrUnrestricted) {
			return nil, err
		}
	}
}

// A conversation holds a place at the gate until it is closed.
type conversation struct {
	remoteside.Agent
	leave func()
}

func (c *conversation) Close() error {
	defer c.leave()
	return c.Agent.Close()
}

// enter waits for a place and takes it. last says that there was none, and
// that it goes in all the same.
func (g *gate) enter(ctx context.Context, first bool) (last bool, err error) {
	place := g.ask(first)
	timer := time.NewTimer(gatePatience)
	defer timer.Stop()
	for {
		select {
		case <-place:
			return false, nil
		case <-ctx.Done():
			g.forgo(place)
			return false, context.Cause(ctx)
		case <-timer.C:
			rest := g.patienceLeft()
			if rest <= 0 {
				return g.force(place), nil
			}
			timer.Reset(rest)
		}
	}
}

// ask returns a channel that is closed when the asker has its place. One whose
// attempt has failed goes first: it has waited longest.
func (g *gate) ask(first bool) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	place := make(chan struct{})
	if first {
		g.queue = append(g.queue, place)
	} else {
		g.queue = slices.Insert(g.queue, 0, place)
	}
	g.admit()
	return place
}

// admit gives the places that there are to those who wait. mu is held.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.open < g.limit() {
		close(g.queue[0])
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.open++
	}
}

func (g *gate) limit() int { return mostConversations - g.lowered }

// forgo takes one who does not wait any more out of the queue, or its place
// back.
func (g *gate) forgo(place chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.unqueue(place) {
		g.open--
		g.admit()
	}
}

// force takes a place that there is not, and reports whether it had to.
func (g *gate) force(place chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.unqueue(place) {
		return false
	}
	g.open++
	return true
}

// unqueue reports whether place was still waited for. mu is held.
func (g *gate) unqueue(place chan struct{}) bool {
	i := slices.Index(g.queue, place)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}

// patienceLeft returns how long to wait until a place is forced. At a gate that
// was never found too wide nobody is: each client there has its turn when
// another has left.
func (g *gate) patienceLeft() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lowered == 0 {
		return gatePatience
	}
	return gatePatience - time.Since(g.moved)
}

// situation is what an attempt began in.
type situation struct{ established, lowerings int }

func (g *gate) attempt() situation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return situation{g.established, g.lowerings}
}

// begin notes that an attempt has become a conversation.
func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.established++
	g.moved = time.Now()
	g.credit++
	if g.lowered > 0 && g.credit > g.limit() {
		g.lowered--
		g.credit = 0
		g.admit()
	}
}

// end notes that a conversation is over.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.established--
	g.open--
	g.moved = time.Now()
	g.admit()
}

// fail gives an attempt's place back and reports whether load is what it
// failed of. Attempts that were under way together lower the gate once.
func (g *gate) fail(before situation) (loaded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	load := max(before.established, g.established)
	if load >= fewConversations && before.lowerings == g.lowerings {
		g.lowerings++
		g.credit = 0
		g.lowered = mostConversations - min(g.limit(), max(fewConversations, load/4*3))
	}
	g.admit()
	return load >= fewConversations
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.established
}
