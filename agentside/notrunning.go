package agentside

import (
	"context"
	"errors"
	"net"

	"gpg-bridge/internal/pinentry"
)

// A listing says whether the system lists a gpg-agent process of this user. It does not list
// an agent in another container, nor another program that answers at the agent's socket; so
// "none is listed" means "none runs" only if one was listed when the agent had answered.
type listing uint8

const (
	neverListed    listing = iota // none was listed when the agent had answered, or it has not answered yet
	listed                        // one was listed then
	noLongerListed                // one was listed then, and none at the last look
)

var errNotRunning = errors.New("no gpg-agent runs, and to connect would start one")

// dialRunning is Locator.dial, but fails with a *NoAgentError if connecting would start an
// agent: none runs, and somebody else listens at its socket to start it, as systemd does
// with gpg-agent.socket.
func (a *Agent) dialRunning(ctx context.Context, path string) (net.Conn, error) {
	if a.isNotRunning() && pinentry.IsListening(path) {
		return nil, &NoAgentError{Path: path, Err: errNotRunning}
	}
	return a.Locator.dial(ctx, path)
}

// isNotRunning reports whether certainly no agent runs.
func (a *Agent) isNotRunning() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listing == neverListed {
		return false
	}
	a.listing = listed
	if all, err := pinentry.Agents(); err == nil && len(all) == 0 {
		a.listing = noLongerListed
	}
	return a.listing == noLongerListed
}

// answered notes that an agent runs, perhaps not the same as before.
func (a *Agent) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listing == listed {
		return
	}
	a.listing = neverListed
	if all, err := pinentry.Agents(); err == nil && len(all) > 0 {
		a.listing = listed
	}
}
