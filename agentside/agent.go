package agentside

import (
	"context"
	"sync"
)

// An Agent is the local gpg-agent, to be connected to as often as needed, from
// any goroutine.
type Agent struct {
	Locator *Locator

	// AllowUnrestricted gives up the proof that connections are restricted.
	AllowUnrestricted bool

	mu    sync.Mutex
	known *Endpoint // where it was last reached
}

// Connect opens a session: it finds the socket, starts the agent if it is not
// running, authenticates, reads the greeting and proves that the connection is
// a restricted one (else ErrUnrestricted). Dialling has 5 seconds, the rest 5
// more; ctx may end it earlier. gpgconf is asked for the socket's path until a
// connection was made, and again after one failed.
func (a *Agent) Connect(ctx context.Context) (*Session, error) {
	at, err := a.endpoint(ctx)
	if err != nil {
		return nil, err
	}
	check := prove
	if a.AllowUnrestricted {
		check = func(*Session) error { return nil }
	}
	session, err := connect(ctx, at, check)
	if err != nil {
		at = nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = at
	return session, err
}

func (a *Agent) endpoint(ctx context.Context) (*Endpoint, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return a.Locator.Locate(ctx)
}

// Path returns where the agent was last reached, or is to be where the user
// named it; "" while that is not known.
func (a *Agent) Path() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known != nil {
		return a.known.Path()
	}
	return a.Locator.AgentSocket
}
