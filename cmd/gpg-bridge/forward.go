package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

const (
	// reconnectMin and reconnectMax bound the time between two tries.
	reconnectMin = time.Second
	reconnectMax = time.Minute

	// steady is how long a connection must have held for the next loss to be
	// a first one.
	steady = time.Minute

	// authRetry is the time between two tries that the host turned down.
	authRetry = 10 * time.Minute

	// holderPause is between two looks at a lock whose holder does not answer:
	// it is about to listen, or to end.
	holderPause = 20 * time.Millisecond

	// aliveTimeout is how long the host has to answer after a suspend.
	aliveTimeout = 5 * time.Second
)

// keepForwarding serves until a signal comes, as soon as no other process does.
// A connection that was there and is lost is made again, for as long as it takes;
// one that cannot be made in the first place is an error, as with ssh.
func (r *sshRun) keepForwarding(ctx context.Context) error {
	dir, err := share.Open()
	if err != nil {
		r.ui.warn(err)
		return r.forwardAndReconnect(ctx)
	}
	defer dir.Close()
	err = r.becomeHolder(ctx, dir)
	if errors.Is(err, share.ErrTakenDown) {
		return nil // as for the one that it waited for
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	defer r.holder.Close()
	return r.forwardUntilAsked(ctx, func(ctx context.Context) { <-ctx.Done() })
}

// forwardUntilAsked serves as the holder, until somebody asks it to end or
// unneeded returns.
func (r *sshRun) forwardUntilAsked(ctx context.Context, unneeded func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		defer cancel()
		unneeded(ctx)
	})
	waiting.Go(func() {
		defer cancel()
		select {
		case <-r.holder.Stopped():
		case <-ctx.Done():
		}
	})
	return r.forwardAndReconnect(ctx)
}

// becomeHolder waits until this process is the bridge of its target.
func (r *sshRun) becomeHolder(ctx context.Context, dir *share.Dir) (err error) {
	if r.flags.remote.takeover {
		_, _ = dir.Replace(ctx, r.target.id)
	}
	for ctx.Err() == nil {
		if r.holder, err = r.board.hold(dir, r.target.id); !errors.Is(err, share.ErrHeld) {
			return err
		}
		if err := r.waitForOther(ctx, dir); errors.Is(err, share.ErrTakenDown) {
			return err
		}
	}
	return nil
}

// waitForOther waits for the end of the process that is the bridge, and says once
// that it is. One in the background that is not up makes way. It returns why the
// other ended.
func (r *sshRun) waitForOther(ctx context.Context, dir *share.Dir) error {
	var once sync.Once
	return followOther(ctx, dir, r.target.id, func(status share.Status) {
		once.Do(func() {
			r.ui.tell(fmt.Sprintf("process %d already serves gpg on %s at %s; this one takes over when it ends",
				status.PID, r.flags.options.Destination, sshfwd.Printable(status.RemoteSocket)))
		})
	}, func(status share.Status) bool { return status.Kind == share.Background })
}

// forwardAndReconnect connects, serves, and connects again.
func (r *sshRun) forwardAndReconnect(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	resumed, watched := retry.Resumed(watching)
	defer func() {
		stop()
		<-watched
	}()
	backoff := retry.Backoff{Min: reconnectMin, Max: reconnectMax}
	for served := false; ; {
		var since time.Time
		err := r.once(ctx, func(ctx context.Context, b *bridge.Bridge) error {
			since = time.Now()
			return r.serve(ctx, b, resumed, &served)
		})
		if ctx.Err() != nil {
			return nil
		}
		if !r.background && (!served || hopeless(err)) {
			return err
		}
		if !since.IsZero() && time.Since(since) > steady {
			backoff.Reset()
		}
		r.master.judge(err)
		delay := r.delay(backoff.Next(), err)
		r.board.problem(cause(err))
		r.board.set(share.Waiting, nil)
		r.ui.tell(fmt.Sprintf("%v; connecting again in %v", cause(err), delay.Round(time.Second/10)))
		if r.pause(ctx, delay, resumed) != nil {
			return nil
		}
		r.board.set(share.Connecting, nil)
		r.board.reconnected()
	}
}

// pause waits for the next try: less after a suspend, and less when another
// process wants to use the bridge, whose user has just been let in by the host,
// and less when an ssh of the user's begins to share its connection.
func (r *sshRun) pause(ctx context.Context, delay time.Duration, resumed <-chan struct{}) error {
	if r.holder == nil {
		return retry.Sleep(ctx, delay, resumed)
	}
	select {
	case <-r.holder.Leased(): // while the last try was under way
	default:
	}
	first := min(delay, reconnectMin)
	if err := retry.Sleep(ctx, first, nil); err != nil || first == delay {
		return err
	}
	timer := time.NewTimer(delay - first)
	defer timer.Stop()
	look, stop := r.master.look()
	defer stop()
	for {
		select {
		case <-timer.C:
			return nil
		case <-resumed:
			return nil
		case <-r.holder.Leased():
			return nil
		case <-look:
			if r.master.appeared() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// delay is the time before the next try: long where a host would count the
// tries, and lock the account out.
func (r *sshRun) delay(next time.Duration, err error) time.Duration {
	var auth *sshfwd.AuthError
	if errors.As(err, &auth) {
		return max(next, authRetry)
	}
	return next
}

// serve says what is forwarded where, and waits until ctx or the connection
// ends.
func (r *sshRun) serve(ctx context.Context, b *bridge.Bridge, resumed <-chan struct{}, served *bool) error {
	if err := b.Verified(ctx); err != nil && ctx.Err() == nil {
		return &exitError{exitConnection, err}
	}
	*served = true
	r.ui.tell(fmt.Sprintf("your agent serves gpg on %s at %s", r.flags.options.Destination, sshfwd.Printable(b.Path())))
	ended, conn := make(chan error, 1), r.conn
	go func() { ended <- conn.Wait() }() // ends with the connection, which once closes
	for {
		select {
		case err := <-ended:
			return &exitError{exitConnection, err}
		case <-resumed:
			r.askAlive(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// askAlive makes a connection that did not survive a suspend end.
func (r *sshRun) askAlive(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	r.conn.CheckAlive(ctx)
}

// hopeless reports whether trying again cannot help, or must not be done: a
// changed host key, or a host that floods us, is for the user to judge.
func hopeless(err error) bool {
	var key *sshfwd.HostKeyError
	var config *sshfwd.ConfigError
	var unsupported *sshfwd.UnsupportedError
	return errors.As(err, &key) || errors.As(err, &config) || errors.As(err, &unsupported) ||
		errors.Is(err, sshfwd.ErrHeldTooMuch)
}

// cause is the error to show of one that carries an exit code.
func cause(err error) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.err != nil {
		return exit.err
	}
	return err
}
