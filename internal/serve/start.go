package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside/prepare"
)

// An Attempt is one start of a bridge on a connection.
type Attempt struct {
	Connection Connection
	Local      *bridge.Local
	Progress   *Progress
	Find       func(context.Context) bridge.Finding // checks the local side
	Warn       func(error)                          // tells the user what does not end the bridge

	// Again, where not nil, reports whether an earlier attempt failed and the bridge is not up:
	// the user was told the reason then.
	Again func() bool

	Requested func()               // bridge.Options.Requested, if the local side is fine; or nil
	MOTD      func(lines []string) // bridge.Options.MOTD
	LookFor   time.Duration        // bridge.Options.LookFor
}

// Start starts the bridge, and publishes the result in the status. err says why there is no
// bridge. agent says that the local agent cannot be used; there may be a bridge all the same,
// which tells gpg on the host so that it starts no agent of its own.
func (s *Service) Start(ctx context.Context, a Attempt) (up *bridge.Bridge, agent, err error) {
	if err := s.stillHeld(ctx, a); err != nil {
		return nil, nil, err
	}
	a.Progress.WaitFor(Stage{On: OnLocal})
	found := a.Find(ctx)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	s.tellNoKey(found)
	s.Status.Agent(a.Local.Agent.Path())
	a.Progress.WaitFor(s.firstStage())
	up, err = s.startBridge(ctx, a, found, s.bridgeOptions(a, found))
	if _, held := errors.AsType[*prepare.HeldError](err); held && up == nil {
		s.held = true
	}
	if up != nil {
		s.Status.Set(share.Up, up)
	}
	return up, found.Err, err
}

// firstStage returns what a bridge waits for on the host at first.
func (s *Service) firstStage() Stage {
	if s.Target.Spec.RemoteSocket != "" { // no shell is run there
		return Stage{On: OnHost}
	}
	return Stage{On: OnShell}
}

func (s *Service) bridgeOptions(a Attempt, found bridge.Finding) bridge.Options {
	spec := s.Target.Spec
	options := bridge.Options{
		Begun:        func() { a.Progress.WaitFor(Stage{On: OnHost}) },
		RemoteSocket: spec.RemoteSocket,
		Takeover:     spec.Takeover,
		MOTD:         a.MOTD,
		LookFor:      a.LookFor,
		Stats:        s.Status.stats,
		Changed:      s.Status.Looked,
		Log:          s.Log,
		Warn: func(err error) {
			s.Status.Problem(err)
			if a.Again == nil || !a.Again() {
				a.Warn(err)
			}
		},
	}
	if s.LoginShell && a.Connection.SharedBy() == 0 { // a shared one carries one forward
		options.Login = s.loginShell(a)
	}
	if found.Err == nil {
		options.Requested = a.Requested
	}
	return options
}

// stillHeld returns an error if another connection had the path at the last look and still
// has. It does not use the local agent: one that the user has ended must not be started for a
// path that is not free. An account that turns out to have no shell is an error, so that what
// it runs instead is run only once: see startBridge.
func (s *Service) stillHeld(ctx context.Context, a Attempt) error {
	if !s.held {
		return nil
	}
	a.Progress.WaitFor(Stage{On: OnHost})
	err := prepare.Look(ctx, a.Connection, "")
	_, own := errors.AsType[*prepare.OwnAgentError](err)
	_, noShell := errors.AsType[*prepare.NoShellError](err)
	s.held = err != nil && !own && !noShell
	if own {
		return nil
	}
	return err
}

// AgentError says that the local agent cannot be used, and why.
func AgentError(why error) error { return fmt.Errorf("the local agent cannot be used: %w", why) }

// TellServed tells the user that gpg on the host is served.
func (s *Service) TellServed(up *bridge.Bridge) {
	s.UI.Tell(fmt.Sprintf("your agent serves gpg on %s at %s", s.Target.Spec.Host, usertext.Printable(up.Path())))
}

// TakeDown ends a bridge and tidies up on the host, for no longer than within. ctx may have
// ended before, by a signal, and does not shorten that.
func (s *Service) TakeDown(ctx context.Context, up *bridge.Bridge, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	s.Status.Set(share.Stopping, nil)
	if err := up.Close(ctx); err != nil {
		s.Log.Debug("the bridge was not taken down cleanly", "error", err)
	}
}
