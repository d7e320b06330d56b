package bridge

import (
	"context"
	"errors"

	"gpg-bridge/internal/retry"
	"gpg-bridge/remoteside/prepare"
)

// A LoginShell says what a bridge is to do about the gpg of a login shell. Asking the shell
// runs the user's start-up files, so its answer is remembered. The functions may be called
// from another goroutine.
type LoginShell struct {
	// Known returns the remembered answer: home as prepare.LoginHome returns it, or
	// why it cannot be known. Without ok, the login shell is asked.
	Known func() (home string, why error, ok bool)

	// Answered remembers an answer, or why there will be none.
	Answered func(home string, why error)

	// Served is called with a path that is served beside the first one.
	Served func(path string)

	// Failed is called with the reason why that path is not served.
	Failed func(error)
}

// A login is a second bridge over the same link, for the path at which the gpg of a login
// shell looks if its start-up files set a GNUPGHOME that commands do not see.
type login struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when bridge is up, or will not be; that takes long while another has the path
	bridge *Bridge       // may be nil
}

// startLogin starts to bring up the second bridge. It is called when the first path is
// served, since start-up files may use gpg.
func (b *Bridge) startLogin(ctx context.Context, found Finding) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.login = &login{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.login.ended)
		b.login.bridge = b.bringLogin(ctx, found)
	}()
}

// bringLogin brings up the second bridge, if there is to be one. If the remembered home is
// gone, the login shell may have another one now, and is asked again.
func (b *Bridge) bringLogin(ctx context.Context, found Finding) *Bridge {
	home, why, known := b.options.Login.Known()
	if !known {
		home, why = b.askLogin(ctx)
	}
	second, err := b.startAt(ctx, home, why, found)
	if gone, ok := errors.AsType[*prepare.HomeError](err); ok && known {
		b.options.Log.Debug("a login shell is asked again", "error", gone)
		if home, why = b.askLogin(ctx); why != nil || home != gone.Home {
			second, err = b.startAt(ctx, home, why, found)
		}
	}
	if err != nil && ctx.Err() == nil {
		b.options.Login.Failed(err)
	}
	return second
}

// askLogin asks the login shell. If the connection ends before there is an answer, nothing
// is remembered.
func (b *Bridge) askLogin(ctx context.Context) (string, error) {
	home, err := prepare.LoginHome(ctx, b.link)
	_, late := errors.AsType[*prepare.LoginTimeoutError](err)
	if err == nil || late || errors.Is(err, prepare.ErrLoginHome) {
		b.options.Login.Answered(home, err)
	}
	return home, err
}

// startAt brings up the second bridge at the login shell's home. It returns nil if home is
// "" or if why says that it cannot be known.
func (b *Bridge) startAt(ctx context.Context, home string, why error, found Finding) (*Bridge, error) {
	if _, late := errors.AsType[*prepare.LoginTimeoutError](why); late {
		return nil, why
	}
	if why != nil || home == "" {
		b.options.Log.Debug("gpg in a login shell is not served elsewhere", "error", why)
		return nil, nil
	}
	options := b.options
	options.home, options.prompts, options.Warn = home, b.prompts, b.options.Login.Failed
	options.Begun, options.MOTD, options.Login, options.Requested, options.Takeover = nil, nil, nil, nil, false
	found.KeysErr = nil // the first bridge has warned of it
	second, err := Start(ctx, b.link, b.local, found, options)
	held, isHeld := errors.AsType[*prepare.HeldError](err)
	switch {
	case isHeld && held.Socket == b.Path(): // the same home by another name
		return nil, nil
	case isHeld && b.options.Takeover:
		options.Takeover = true
		second, err = Start(ctx, b.link, b.local, found, options)
	case isHeld:
		b.options.Login.Failed(err)
		second, err = b.startWhenFree(ctx, found, options)
	}
	if err == nil {
		b.options.Login.Served(second.Path())
	}
	return second, err
}

// startWhenFree waits until no other connection has the second bridge's path, and starts the
// bridge. Until then it does not connect to the agent.
func (b *Bridge) startWhenFree(ctx context.Context, found Finding, options Options) (*Bridge, error) {
	pauses := retry.Backoff{Min: b.options.timing.pause, Max: mostHeldPause}
	for {
		if err := retry.Sleep(ctx, pauses.Next(), nil); err != nil {
			return nil, err
		}
		err := prepare.Look(ctx, b.link, options.home)
		if _, own := errors.AsType[*prepare.OwnAgentError](err); err != nil && !own {
			b.options.Log.Debug("the path of a login shell's gpg is not free", "error", err)
			continue
		}
		found.Err = b.agentErr()
		second, err := Start(ctx, b.link, b.local, found, options)
		if _, held := errors.AsType[*prepare.HeldError](err); !held {
			return second, err
		}
	}
}

// up returns the second bridge, nil where there is none, or not yet.
func (l *login) up() *Bridge {
	if l == nil || !isClosed(l.ended) {
		return nil
	}
	return l.bridge
}

// close takes the second bridge down; the nil *login has none.
func (l *login) close(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.cancel()
	<-l.ended
	if l.bridge == nil {
		return nil
	}
	return l.bridge.Close(ctx)
}
