package agentside

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// An Agent is the local gpg-agent. Any goroutine may connect to it, as often as
// needed.
type Agent struct {
	Locator *Locator

	// AllowUnrestricted skips the proof that connections are restricted.
	AllowUnrestricted bool

	mu     sync.Mutex
	known  *Endpoint       // where it was last reached
	own    string          // the main socket of the agent that the user named; see mainPath
	places *pinentryPlaces // see Pinentry; reset together with known

	located string // the path where it was last looked for
	listing listing

	ungreeted atomic.Int32 // conversations that have begun and were not greeted yet
}

// Connect opens a session: it finds the socket, starts the agent if it is not
// running, authenticates, reads the greeting and proves that the connection is
// a restricted one (else ErrUnrestricted). Dialling may take 5 seconds, the rest 5
// more, and less if ctx ends. gpgconf is asked for the socket's path by the first
// Connect, and again after a Connect has failed.
func (a *Agent) Connect(ctx context.Context) (*Session, error) {
	session, err := a.reach(ctx, func(at *Endpoint, located bool) (*Session, error) {
		if !located {
			return a.connect(ctx, noStart{at, a.Locator.dial}, a.check)
		}
		return a.connect(ctx, at, a.check)
	})
	if err != nil {
		a.forget()
		return nil, err
	}
	a.answered()
	return session, nil
}

// reach calls try with the endpoint where the agent was last reached. If it was not reached
// yet, or nobody listens there any more, reach calls try with the one that gpgconf names,
// and located is true. The sockets move when /run/user/UID appears at a log-in, or goes at
// the last log-out. All kinds of connections share the remembered endpoint, so that they
// lead to the same agent.
func (a *Agent) reach(ctx context.Context, try func(at *Endpoint, located bool) (*Session, error)) (*Session, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known != nil {
		session, err := try(known, false)
		if _, gone := errors.AsType[*NoAgentError](err); !gone || known.fixed {
			return session, err
		}
		a.forget()
	}
	at, err := a.locate(ctx)
	if err != nil {
		return nil, err
	}
	session, err := try(at, true)
	if err == nil {
		a.mu.Lock()
		a.known = at
		a.mu.Unlock()
	}
	return session, err
}

// forget makes the next connection ask gpgconf for everything again.
func (a *Agent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.places = nil, nil
}

// connect is the function connect, and counts in ungreeted.
func (a *Agent) connect(ctx context.Context, at endpoint, check func(*Session) error) (*Session, error) {
	a.ungreeted.Add(1)
	greeted := sync.OnceFunc(func() { a.ungreeted.Add(-1) })
	defer greeted()
	return connect(ctx, at, func(s *Session) error {
		greeted()
		return check(s)
	})
}

func (a *Agent) check(s *Session) error {
	if a.AllowUnrestricted {
		return nil
	}
	return prove(s)
}

// Alive reports whether an agent runs, and tries to connect to it. It starts none:
// if none runs, the next Connect will start it. The error is the one that a Connect
// would return. Alive takes no longer than a Connect.
func (a *Agent) Alive(ctx context.Context) (running bool, err error) {
	session, err := a.reach(ctx, func(at *Endpoint, _ bool) (*Session, error) {
		return a.connect(ctx, noStart{at, a.dialRunning}, a.check)
	})
	_, gone := errors.AsType[*NoAgentError](err)
	if gone && a.Locator.AgentSocket == "" || errors.Is(err, errNotRunning) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, session.Close()
}

func (a *Agent) locate(ctx context.Context) (*Endpoint, error) {
	at, err := a.Locator.Locate(ctx)
	if err == nil {
		a.mu.Lock()
		a.located = at.Path()
		a.mu.Unlock()
	}
	return at, err
}

// Path returns the path of the socket where the agent was last reached, or else the
// one that the user named; "" if there is neither.
func (a *Agent) Path() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known != nil {
		return a.known.Path()
	}
	return a.Locator.AgentSocket
}
