package bridge

import (
	"context"
	"errors"
	"fmt"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/retry"
	"gpg-bridge/remoteside"
)

// A Hindrance is what prevents a signature on the host.
type Hindrance uint8

// The hindrances, worst first. Each goes away when its cause does.
const (
	None    Hindrance = iota
	Taken             // the path on the host is gone, or leads to somebody else
	Silent            // the host did not answer when the path was looked at
	NoAgent           // the local agent cannot be used, or not for what needs a prompt
	Blocked           // the agent has a prompt open that most likely nobody waits for any more
)

// Health returns the worst hindrance that the last looks at the paths and at the agent
// found, and its cause.
func (b *Bridge) Health() (Hindrance, error) {
	what, why := b.ownHealth()
	if second := b.login.up(); second != nil {
		if other, err := second.ownHealth(); other != None && (what == None || other < what) {
			return other, fmt.Errorf("for the gpg of a login shell: %w", err)
		}
	}
	return what, why
}

// ownHealth is Health without the second bridge.
func (b *Bridge) ownHealth() (Hindrance, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.lost == nil && b.agent == nil && b.prompts.isOpen():
		return Blocked, &AbandonedError{}
	case b.lost == nil && b.agent == nil:
		return None, nil
	case b.lost == nil:
		return NoAgent, b.agent
	case b.lossLasts:
		return Taken, b.lost
	}
	return Silent, b.lost
}

// setPath notes why the path is not ours, or could not be verified, and reports
// whether something is wrong that was not known before.
func (b *Bridge) setPath(err error) (news bool) {
	b.mu.Lock()
	news = err != nil && b.lost == nil
	changed := err != nil || b.lost != nil
	b.lost, b.lossLasts = err, b.taken
	b.mu.Unlock()
	if changed {
		b.changed()
	}
	return news
}

// setAgent notes why the agent cannot be used; nil: it can.
func (b *Bridge) setAgent(err error) {
	b.mu.Lock()
	before := b.agent
	b.agent = err
	b.mu.Unlock()
	if before == nil && err != nil {
		signal(b.askAgentNow) // watchAgent then looks more often
	}
	if err != nil || before != nil {
		b.changed()
	}
}

func (b *Bridge) agentErr() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.agent
}

func (b *Bridge) changed() {
	if b.options.Changed != nil {
		b.options.Changed()
	}
}

// watchAgent looks at the local agent at intervals, more often while the agent cannot
// be used, and whenever Look is called.
func (b *Bridge) watchAgent(ctx context.Context) {
	for {
		wait := b.options.timing.interval
		if b.agentErr() != nil {
			wait = min(wait, b.options.timing.agent)
		}
		if retry.Sleep(ctx, wait, b.askAgentNow) != nil || ctx.Err() != nil {
			return
		}
		b.askAgent(ctx)
	}
}

// askAgent starts no agent: the user may have ended it, and the next client will start it.
// If starting it has failed before, that remains the hindrance.
func (b *Bridge) askAgent(ctx context.Context) {
	running, err := b.local.Agent.Alive(ctx)
	var start *agentside.StartError
	if ctx.Err() != nil || !running && err == nil && errors.As(b.agentErr(), &start) {
		return
	}
	if isUngreeted(err) {
		b.local.gate.closeIdle() // it may be ending, and wait for them
	}
	if running && err == nil && b.isUndecided() {
		err = b.local.undecided(ctx)
	}
	if ctx.Err() == nil {
		b.setAgent(err)
	}
}

// connectAgent is Local.Connect, and notes the result. An agent that answers is not enough:
// it must also be known where it would ask its user.
func (b *Bridge) connectAgent(ctx context.Context) (remoteside.Agent, error) {
	agent, err := b.local.connect(ctx, b.promptRefused)
	if ctx.Err() == nil && (err != nil || !b.isUndecided()) {
		b.setAgent(err)
	}
	return agent, err
}

// promptRefused notes a refusal, of which a host may cause a thousand in a second. A bridge
// that refuses because it could not find out where the agent would ask cannot be used.
func (b *Bridge) promptRefused(why *PromptError) {
	b.local.promptRefused(why)
	if why.Unknown != nil && !b.isUndecided() {
		b.setAgent(why)
	}
}

func (b *Bridge) isUndecided() bool {
	_, undecided := errors.AsType[*PromptError](b.agentErr())
	return undecided
}

// undecided returns why it cannot be found out whether a prompt would be misplaced, or nil.
func (l *Local) undecided(ctx context.Context) error {
	if refusal := l.misplacedPrompt(ctx); refusal != nil && refusal.Unknown != nil {
		return refusal
	}
	return nil
}

// sessionEnded warns, once for each bridge, when the agent cannot be reached.
func (b *Bridge) sessionEnded(r remoteside.Report) {
	b.mu.Lock()
	first := r.Unreachable != nil && !b.warned
	b.warned = b.warned || first
	b.mu.Unlock()
	if first {
		b.options.Warn(fmt.Errorf("no agent for a gpg on the host: %w", r.Unreachable))
	}
}
