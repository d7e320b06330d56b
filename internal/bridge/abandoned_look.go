package bridge

import (
	"context"
	"errors"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
)

// look looks at the agent, cancels a prompt that is abandoned or tells the user of it, and
// reports whether it has cancelled one.
//
// A prompt is cancelled only if, at one moment, every connection of the agent was accounted
// for, and the prompt can have been opened for none of them. So the order matters:
//
//  1. The uses whose clients have left, so that a use that is left during the look is not
//     taken for one that the agent is done with.
//  2. The prompts.
//  3. The connections. The client of a prompt connected before the prompt opened: either
//     its connection is still there, or it no longer waits.
//  4. The uses that our clients wait for: one that opened a listed prompt has begun by now.
func (p *abandonedPrompts) look(ctx context.Context) (ended bool) {
	s := p.situation()
	looking, cancel := context.WithTimeout(ctx, abandonedPatience)
	defer cancel()
	err := p.see(looking, &s)
	if ctx.Err() != nil {
		return false
	}
	s.pending = p.situation().pending
	if err == nil || isUntellable(err) {
		p.failedLooks = 0
	} else {
		p.log.Debug("the agent's prompts could not be looked at", "error", err)
		p.failedLooks++
		if p.failedLooks < mostFailedLooks {
			return false
		}
	}
	found := judge(s)
	if ended = found == promptAbandoned && p.end(looking, s.prompts); ended {
		found = promptNone
	}
	p.note(s, found)
	return ended
}

// seeAgent returns a function that adds the agent's prompts and clients to a scene; after
// an error the scene is unchanged.
func seeAgent(agent *agentside.Agent) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		return agent.Identity(ctx, func(id agentside.Identity) error {
			prompts, err := pinentry.OfAgent(id.PID)
			if err != nil {
				return err
			}
			clients, counted, err := clientsOf(ctx, id)
			if err == nil {
				s.prompts, s.clients, s.counted = prompts, clients, counted
			}
			return err
		})
	}
}

// clientsOf counts the agent's connections.
func clientsOf(ctx context.Context, id agentside.Identity) (pinentry.Clients, counting, error) {
	list := func() (pinentry.Connections, error) { return pinentry.ConnectionsOf(id.Main) }
	clients, err := pinentry.AccountFor(ctx, list, id.Connections)
	switch {
	case err == nil:
		return clients, countTold, nil
	case errors.Is(err, pinentry.ErrUnsettled):
		return clients, countUnsettled, nil
	case errors.Is(err, pinentry.ErrUnknown), errors.Is(err, agentside.ErrNoNumber):
		return pinentry.Clients{}, countUntold, nil
	}
	return pinentry.Clients{}, countUntold, err
}

// isUntellable reports whether looking can never show anything, or there is no agent and
// therefore no prompt.
func isUntellable(err error) bool {
	var gone *agentside.NoAgentError
	return errors.As(err, &gone) || errors.Is(err, agentside.ErrNotOwnAgent) ||
		errors.Is(err, pinentry.ErrUnknown) || errors.Is(err, pinentry.ErrNotAgent)
}
