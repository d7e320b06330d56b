package promptguard

import (
	"context"
	"errors"
	"slices"
	"time"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/internal/retry"
)

const (
	// agentPatience bounds a question to the agent, and agentPause is how long a slow agent
	// is not asked again: meanwhile keys may be waiting.
	agentPatience = 300 * time.Millisecond
	agentPause    = 5 * time.Second

	// locatePause is the time between two attempts to locate the agent.
	locatePause = time.Second

	// agentsLook is how old a list of the user's agents may be. Making one takes a look at all
	// processes, and a new agent asks nobody in its first moments.
	agentsLook = 100 * time.Millisecond

	// expectedFor is how long an expectation is used.
	expectedFor = time.Second
)

// An agentPlace says whether it is known where the agent can be asked.
type agentPlace uint8

const (
	placeSought  agentPlace = iota // gpgconf, or the agent, has not answered yet
	placeKnown                     // asking the agent costs little
	placeForeign                   // the agent is not this GnuPG home's own, or there is no GnuPG
)

// An expectation says whether a text pinentry would ask on the terminal, and whether it would
// wait for a line.
type expectation struct {
	here, byLine bool
	known        bool // the agent has told
	until        time.Time
}

// An agentList has all of the user's agents at one moment.
type agentList struct {
	all []pinentry.Agent
	at  time.Time
}

// locate finds out whether the agent can be asked. It tries until that is known: gpgconf may
// take long, or fail, and the agent may be stopped.
func (g *Guard) locate() {
	for {
		_, err := g.agent.ProcessID(g.ctx)
		if _, notTold := pinentry.Agents(); notTold != nil { // TextPrompt is needed then, which runs gpgconf, too
			_, _ = g.agent.Pinentry(g.ctx)
		}
		place := placeOf(err)
		g.mu.Lock()
		g.place = place
		g.mu.Unlock()
		if place != placeSought || retry.Sleep(g.ctx, locatePause, nil) != nil {
			return
		}
	}
}

// placeOf interprets the error of asking for the agent's process.
func placeOf(err error) agentPlace {
	_, none := errors.AsType[*agentside.NoAgentError](err)
	switch {
	case err == nil || none:
		return placeKnown
	case errors.Is(err, agentside.ErrNotOwnAgent), errors.Is(err, agentside.ErrNoGpgconf):
		return placeForeign
	}
	return placeSought
}

// look reports whether a pinentry has the terminal. One that has asked here keeps it until it
// ends: between a wrong passphrase and the next question the pinentry closes the terminal. One
// whose agent was killed keeps it as long as it has it open: it goes on reading. mu is held.
func (g *Guard) look() bool {
	prompts, err := g.prompts()
	if errors.Is(err, pinentry.ErrUnknown) {
		expected := g.operations.Load() > 0 && g.isExpected()
		g.byLine = expected && g.expected.byLine
		return expected
	}
	var asking []pinentry.Process
	for _, p := range prompts {
		if p.Uses(g.terminal) || slices.ContainsFunc(g.asking, p.Same) || !p.DevicesKnown && g.isExpected() {
			asking = append(asking, p)
		}
	}
	for _, before := range g.asking {
		if slices.ContainsFunc(prompts, before.Same) {
			continue
		}
		if rest, ok := before.Rest(); ok && (rest.Uses(g.terminal) || !rest.DevicesKnown) {
			asking = append(asking, rest)
		}
	}
	g.asking = asking
	g.byLine = slices.ContainsFunc(asking, func(p pinentry.Process) bool {
		return slices.ContainsFunc(p.Programs, pinentry.ReadsLines)
	})
	return len(asking) > 0
}

// prompts returns the prompts of all the user's agents. An agent of which the session knows
// nothing may ask here, too: one with another GNUPGHOME, or one that was started after the
// socket directory had moved. mu is held.
func (g *Guard) prompts() ([]pinentry.Process, error) {
	if time.Since(g.agents.at) >= agentsLook {
		all, err := pinentry.Agents()
		if err != nil {
			return nil, err
		}
		g.agents = agentList{all, time.Now()}
	}
	var found []pinentry.Process
	for _, agent := range g.agents.all {
		of, err := g.find(agent)
		if err != nil && !errors.Is(err, pinentry.ErrNotAgent) {
			return nil, err
		}
		found = append(found, of...)
	}
	return found, nil
}

// isExpected reports whether an operation may open a prompt here. The answer is remembered for
// expectedFor, or until the agent answers again. An agent that never has may ask here. mu is
// held.
func (g *Guard) isExpected() bool {
	if now := time.Now(); now.After(g.expected.until) {
		var prompt bridge.Prompt
		if g.ask(func(ctx context.Context) { prompt = bridge.TextPrompt(ctx, g.agent) }) {
			g.expected.here = pinentry.Device(prompt.Terminal) == g.terminal
			g.expected.byLine = pinentry.ReadsLines(prompt.Program)
			g.expected.known = true
		} else if !g.expected.known {
			g.expected.here = g.place != placeForeign
		}
		g.expected.until = now.Add(expectedFor)
	}
	return g.expected.here
}

// ask asks the agent, unless it was slow just now, and reports whether it was asked and
// answered in time.
func (g *Guard) ask(question func(context.Context)) bool {
	if g.place != placeKnown || time.Since(g.slowAt) < agentPause {
		return false
	}
	ctx, cancel := context.WithTimeout(g.ctx, agentPatience)
	defer cancel()
	question(ctx)
	if ctx.Err() != nil {
		g.slowAt = time.Now()
		return false
	}
	return true
}
