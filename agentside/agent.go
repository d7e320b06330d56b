package agentside

import "context"

// An Agent is the local gpg-agent, to be connected to as often as needed.
type Agent struct {
	Locator *Locator

	// AllowUnrestricted gives up the proof that connections are restricted.
	AllowUnrestricted bool
}

// Connect opens a session: it finds the socket anew, starts the agent if it is
// not running, authenticates, reads the greeting and proves that the
// connection is restricted (else ErrUnrestricted). Dialling has 5 seconds, the
// rest 5 more; ctx may end it earlier.
func (a *Agent) Connect(ctx context.Context) (*Session, error) {
	at, err := a.Locator.Locate(ctx)
	if err != nil {
		return nil, err
	}
	if a.AllowUnrestricted {
		return connect(ctx, at, func(*Session) error { return nil })
	}
	return connect(ctx, at, prove)
}
