package background

import (
	"context"
	"errors"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
)

// serveUntilAsked is the target's bridge until somebody asks it to end, or nobody needs it any
// more.
func (p *process) serveUntilAsked(ctx context.Context, holder *share.Holder) {
	ctx, stop := retry.Until(ctx, holder.Stopped())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	waiting.Go(func() {
		defer stop()
		_ = holder.Abandoned(ctx, p.service.Target.Spec.Linger)
	})
	p.serveAgainAndAgain(ctx, holder)
}

// serveAgainAndAgain connects, serves until the connection is lost, and connects again, until
// ctx ends.
func (p *process) serveAgainAndAgain(ctx context.Context, holder *share.Holder) {
	resumed, stop := retry.Resumed(ctx)
	defer stop()
	backoff := retry.Reconnecting()
	for {
		since, err := p.serveOnce(ctx, holder, resumed)
		if ctx.Err() != nil || errors.Is(err, errMasterGone) {
			return
		}
		backoff.HeldSince(since)
		p.master.judge(err)
		if p.waitAfter(ctx, holder, err, backoff.Next(), resumed) != nil {
			return
		}
		p.service.Status.Set(share.Connecting, nil)
		p.service.Status.Reconnected()
	}
}

// serveOnce connects, brings the bridge up, serves until the connection or ctx ends, and
// tidies up on the host. since is when the bridge came up, zero if it never did; err says why
// it is down.
func (p *process) serveOnce(ctx context.Context, holder *share.Holder, resumed <-chan struct{}) (since time.Time, err error) {
	local, check, _, end := p.service.Begin(ctx)
	defer end()
	connection, err := p.connect(ctx)
	if err != nil {
		proc.AwaitSignal(ctx, err)
		return time.Time{}, err
	}
	defer connection.Close()
	up, err := p.bringUp(ctx, connection, local, check)
	defer p.takeDown(ctx, up)
	if err != nil {
		return time.Time{}, err
	}
	since = time.Now()
	if err := p.announce(ctx, up); err != nil {
		return since, err
	}
	return since, watch(ctx, connection, up, holder, resumed)
}

// connect uses the connection of the user's ssh, or logs in.
func (p *process) connect(ctx context.Context) (connection serve.Connection, err error) {
	if shared := p.master.open(ctx); shared != nil {
		connection = serve.Connection{Link: shared}
	} else if p.over {
		return serve.Connection{}, errMasterGone
	} else if connection, err = p.service.Dial(ctx); err != nil {
		return serve.Connection{}, err
	}
	p.service.Status.SharedBy(connection.SharedBy())
	return connection, nil
}

// bringUp starts the bridge. There may be one although it returns an error, if the local
// agent cannot be used: the caller takes it down.
func (p *process) bringUp(ctx context.Context, connection serve.Connection, local *bridge.Local, check *serve.LocalCheck) (*bridge.Bridge, error) {
	var progress serve.Progress
	defer p.service.NoticeWaiting(&progress)()
	up, agent, err := p.service.Start(ctx, serve.Attempt{
		Connection: connection, Local: local, Progress: &progress, Find: check.Wait,
		Warn: p.service.UI.Warn, LookFor: p.master.lookFor(connection),
	})
	if agent != nil {
		err = serve.AgentError(agent)
	}
	if ctx.Err() != nil {
		return up, context.Cause(ctx)
	}
	if err != nil {
		p.service.Status.Problem(err)
	}
	return up, err
}

// announce tells the user that gpg on the host is served, or returns what is wrong with the
// path there.
func (p *process) announce(ctx context.Context, up *bridge.Bridge) error {
	err := up.Verified(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		p.service.TellServed(up)
	}
	return err
}

// watch returns why the connection has ended, or when ctx ends. Meanwhile it has the bridge
// look at its path when somebody begins to use it, and after a suspend.
func watch(ctx context.Context, connection serve.Connection, up *bridge.Bridge, holder *share.Holder, resumed <-chan struct{}) error {
	ended := make(chan error, 1)
	go func() { ended <- connection.Wait() }() // ends with the connection, which the caller closes
	for {
		select {
		case err := <-ended:
			return err
		case <-resumed:
			serve.AskAlive(ctx, connection)
			up.Look()
		case <-holder.Leased():
			up.Look()
		case <-ctx.Done():
			return nil
		}
	}
}

// takeDown ends the bridge, if there is one, and tidies up on the host, even if ctx has ended.
func (p *process) takeDown(ctx context.Context, up *bridge.Bridge) {
	if up != nil {
		p.service.TakeDown(ctx, up, serve.CloseTimeout)
	}
}

// waitAfter tells why there is no connection, and waits for the next try. If that needs the
// user, it is made when somebody uses the bridge.
func (p *process) waitAfter(ctx context.Context, holder *share.Holder, err error, next time.Duration, resumed <-chan struct{}) error {
	s := p.service
	if key := s.Token.Key(); key != "" {
		err = &serve.TouchError{Key: key, Host: s.Target.Spec.Host, Cause: err}
		next, resumed = serve.WhenUsed, nil
		s.UI.Tell(err.Error())
	} else {
		next = serve.DelayAfter(err, next)
		s.UI.Tell(serve.ConnectingAgain(err, next))
	}
	s.Status.Problem(err)
	s.Status.Set(share.Waiting, nil)
	look, stop := p.master.look()
	defer stop()
	return serve.Pause(ctx, next, resumed, holder, look, p.master.appeared)
}
