package promptguard

import (
	"slices"
	"time"

	"gpg-bridge/internal/pinentry"
)

// againWithin: a second Ctrl-C at the same prompt within this time ends the session.
const againWithin = time.Second

// A cancellation has the prompts that were cancelled last, and when.
type cancellation struct {
	prompts []pinentry.Process
	at      time.Time
}

// cancelPrompt cancels the prompts on the terminal, and reports whether there are any. It
// returns false for the same prompts a second time within againWithin.
//
// It handles Ctrl-C and Ctrl-\ at the prompt. pinentry-curses sets ISIG (curses' cbreak()
// does), but the agent has started it outside the terminal's session. So the terminal sends
// the signals of these keys to us and not to the pinentry. If the system does not tell which
// process asks, nothing is cancelled.
func (g *Guard) cancelPrompt() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.takenLocked():
		return false
	case !g.look(): // it has just ended
		return true
	}
	now := cancellation{g.asking, time.Now()}
	if now.at.Sub(g.told.at) < againWithin && slices.EqualFunc(now.prompts, g.told.prompts, pinentry.Process.Same) {
		return false
	}
	g.told = now
	for _, p := range now.prompts {
		g.work.Go(func() { _ = p.End(g.ctx) }) // if that fails, the prompt can be cancelled again
	}
	return true
}
