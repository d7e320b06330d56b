package bridge

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gpg-bridge/agentside"
	"gpg-bridge/assuan"
	"gpg-bridge/remoteside"
)

const (
	// fewConversations is what any agent can take: one that refuses another while it has
	// fewer of ours than this is not overloaded; something else is wrong.
	fewConversations = 16

	// gatePatience is how long a client waits at a gate whose bound was lowered while no
	// conversation begins or ends. Then it tries once more, for the last time.
	gatePatience = 30 * time.Second
)

// A gate bounds the conversations with one agent to what the agent can take. That number
// cannot be asked for: a restricted connection does not tell the agent's process ID, and
// others use its descriptors, too. So the gate learns. An attempt that fails while many
// conversations are open lowers the bound below their number, and waits at the head of the
// queue for one to end. After as many new conversations as the bound allows, the bound
// rises by one. The zero value is ready.
//
// A client at the gate has been greeted, and its first command is not yet answered.
// gpg has no timeout there.
type gate struct {
	mu          sync.Mutex
	lowered     int       // how far below mostConversations the bound is
	lowerings   int       // how often it was lowered
	credit      int       // conversations begun since it last changed
	open        int       // places taken: by conversations, attempts at one, and those held
	established int       // conversations
	held        int       // places of conversations that have ended here, but not yet in the agent
	moved       time.Time // when one last began or ended
	talking     map[*conversation]struct{}
	queue       []chan struct{}
}

// connect waits for a place and opens a conversation with dial. Closing the conversation
// frees the place. ctx bounds the wait and the dialling. dial's error is returned if load is
// not its likely cause, or after gatePatience.
func (g *gate) connect(ctx context.Context, dial func(context.Context) (remoteside.Agent, error)) (remoteside.Agent, error) {
	again := 0
	for first := true; ; first = false {
		last, err := g.enter(ctx, first)
		if err != nil {
			return nil, err
		}
		before := g.attempt()
		agent, err := dial(ctx)
		if err == nil {
			return g.begin(agent), nil
		}
		loaded := g.fail(before)
		if !loaded && ctx.Err() == nil && again < mostAgain && g.mayTryAgain(err, again > 0) {
			again++
			continue
		}
		if last || !loaded || ctx.Err() != nil || errors.Is(err, agentside.ErrUnrestricted) {
			return nil, err
		}
	}
}

// mostAgain is how often an agent that does not greet is tried again: one that is ending
// lives on for a moment after its last conversation.
const mostAgain = 2

// mayTryAgain reports whether an agent that did not greet has ended, or may be about to, so
// that a new one can be started.
func (g *gate) mayTryAgain(err error, again bool) bool {
	return isUngreeted(err) && (g.closeIdle() || again || !errors.Is(err, os.ErrDeadlineExceeded))
}

// isUngreeted reports whether an agent accepted and did not greet, or ended then.
func isUngreeted(err error) bool {
	var ungreeted *agentside.NoGreetingError
	return errors.As(err, &ungreeted)
}

// closeIdle closes the conversations that are between two commands, and reports whether there
// were any. An agent that was asked to end waits for them, greets nobody meanwhile, and keeps
// its successor from starting.
func (g *gate) closeIdle() bool {
	g.mu.Lock()
	var idle []*conversation
	for c := range g.talking {
		if !c.busy.Load() {
			idle = append(idle, c)
		}
	}
	g.mu.Unlock()
	for _, c := range idle {
		_ = c.Agent.Close() // its session then ends as usual, and frees the place
	}
	return len(idle) > 0
}

// A conversation holds a place at the gate until it is closed.
type conversation struct {
	remoteside.Agent
	leave func()
	busy  atomic.Bool // a command has not been answered yet
}

func (c *conversation) WriteLine(line []byte) error {
	c.busy.Store(true)
	return c.Agent.WriteLine(line)
}

func (c *conversation) ReadLine() ([]byte, bool, error) {
	line, more, err := c.Agent.ReadLine()
	if assuan.KindOf(line).Complete() {
		c.busy.Store(false)
	}
	return line, more, err
}

func (c *conversation) Close() error {
	defer c.leave()
	return c.Agent.Close()
}

// enter waits for a place and takes it. last: the wait was over without one, and the place
// was taken beyond the bound.
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

// ask queues for a place, and returns a channel that is closed when the caller has it. A
// caller whose attempt has failed goes to the head of the queue: it has waited longest.
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

// admit gives the free places to those who wait. mu is held.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.open < g.limit() {
		close(g.queue[0])
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.open++
	}
}

func (g *gate) limit() int { return mostConversations - g.lowered }

// forgo takes a caller that has given up out of the queue, or frees the place that it has
// got meanwhile.
func (g *gate) forgo(place chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.unqueue(place) {
		g.open--
		g.admit()
	}
}

// force takes a place beyond the bound, unless the caller has got one meanwhile, and reports
// whether it had to.
func (g *gate) force(place chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.unqueue(place) {
		return false
	}
	g.open++
	return true
}

// unqueue removes place from the queue, and reports whether it was still there. mu is held.
func (g *gate) unqueue(place chan struct{}) bool {
	i := slices.Index(g.queue, place)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	return i >= 0
}

// patienceLeft returns how long to wait before a place is taken beyond the bound. That never
// happens while the bound is not lowered: then each client gets its turn when another has left.
func (g *gate) patienceLeft() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lowered == 0 {
		return gatePatience
	}
	return gatePatience - time.Since(g.moved)
}

// situation is the gate's state when an attempt began.
type situation struct{ established, lowerings int }

func (g *gate) attempt() situation {
	g.mu.Lock()
	defer g.mu.Unlock()
	return situation{g.load(), g.lowerings}
}

// begin notes that an attempt has become a conversation.
func (g *gate) begin(agent remoteside.Agent) *conversation {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := &conversation{Agent: agent}
	c.leave = sync.OnceFunc(func() { g.end(c) })
	if g.talking == nil {
		g.talking = map[*conversation]struct{}{}
	}
	g.talking[c] = struct{}{}
	g.established++
	g.moved = time.Now()
	g.credit++
	if g.lowered > 0 && g.credit > g.limit() {
		g.lowered--
		g.credit = 0
		g.admit()
	}
	return c
}

// end notes that a conversation is over.
func (g *gate) end(c *conversation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.talking, c)
	g.established--
	g.open--
	g.moved = time.Now()
	g.admit()
}

// fail frees the place of an attempt that failed, and reports whether load is the likely
// cause. Attempts that were made concurrently lower the bound only once.
func (g *gate) fail(before situation) (loaded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	load := max(before.established, g.load())
	if load >= fewConversations && before.lowerings == g.lowerings {
		g.lowerings++
		g.credit = 0
		g.lowered = mostConversations - min(g.limit(), max(fewConversations, load/4*3))
	}
	g.admit()
	return load >= fewConversations
}

// hold takes places for conversations that have ended here, but not yet in the agent, or
// frees them if places is negative. It does not wait: these conversations had their places
// before.
func (g *gate) hold(places int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open += places
	g.held += places
	if places < 0 {
		g.moved = time.Now()
	}
	g.admit()
}

// load is how many of our connections the agent has. mu is held.
func (g *gate) load() int { return g.established + g.held }

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load()
}
