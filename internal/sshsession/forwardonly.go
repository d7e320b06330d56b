package sshsession

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/ui"
)

// errNotWanted ends a -N that was asked to make way or to end.
var errNotWanted = errors.New("nobody wants it any more")

// keepForwarding is -N: it serves until a signal comes, or somebody asks it to end. While
// another process is the bridge, it waits on a connection of its own. If the connection is lost
// it connects again, for as long as that takes; but if the first one fails, that is an error,
// as with ssh.
func (r *run) keepForwarding(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if dir, err := share.Open(); err == nil { // takePart reports the error
		defer dir.Close()
		r.place = &waitingPlace{run: r, dir: dir, end: cancel}
		defer r.place.leave()
	}
	err := r.forwardAgainAndAgain(ctx)
	if errors.Is(err, errNotWanted) || errors.Is(err, share.ErrTakenDown) {
		return nil
	}
	return err
}

// forwardAgainAndAgain connects, serves, and connects again.
func (r *run) forwardAgainAndAgain(ctx context.Context) error {
	resumed, stop := retry.Resumed(ctx)
	defer stop()
	backoff := retry.Reconnecting()
	for served := false; ; {
		since, err := r.forwardOnce(ctx, resumed, &served)
		if ctx.Err() != nil && served {
			err = nil // ssh would have ended with its first connection
		}
		if ctx.Err() != nil {
			return r.killed(ctx, err)
		}
		if !served || r.overSSH || link.Hopeless(err) || errors.Is(err, errNotWanted) || errors.Is(err, share.ErrTakenDown) {
			return err
		}
		backoff.HeldSince(since)
		if r.waitAfter(ctx, cause(err), backoff.Next(), resumed) != nil {
			return r.killed(ctx, nil)
		}
		if r.place == nil { // with a place, the status stays share.Waiting until the log-in
			r.service.Status.Set(share.Connecting, nil)
		}
		r.service.Status.Reconnected()
	}
}

// forwardOnce connects, brings up the bridge and the user's forwards, and serves until the
// connection or ctx ends, or until a process that does nothing else is no longer wanted. since
// is when the forwards came up, zero for never; served is set when they can be used.
func (r *run) forwardOnce(ctx context.Context, resumed <-chan struct{}, served *bool) (since time.Time, err error) {
	local, check, end := r.begin(ctx)
	defer end()
	if err := r.connect(ctx); err != nil {
		return time.Time{}, err
	}
	defer r.disconnect(ctx)
	if r.place != nil {
		r.place.leave()
		r.service.Status.Set(share.Connecting, nil)
	}
	beside := r.bringUp(ctx, local, check)
	defer beside.takeDown(ctx)
	if err := r.setUp(ctx, beside); err != nil {
		return time.Time{}, err
	}
	since = time.Now()
	if r.bridgeIsAll() {
		if err := beside.announce(ctx); err != nil {
			return since, ui.Exit(ui.ExitConnection, err)
		}
	}
	*served = true
	return since, r.watch(ctx, beside, resumed)
}

// watch returns when the connection or ctx has ended, or when a process that does nothing else
// is no longer wanted.
func (r *run) watch(ctx context.Context, beside *sessionBridge, resumed <-chan struct{}) error {
	var over <-chan struct{}
	if r.isOnlyBridge() {
		over = beside.ended
	}
	ended, connection := make(chan error, 1), r.conn
	go func() { ended <- connection.Wait() }() // ends with the connection, which forwardOnce closes
	for {
		select {
		case err := <-ended:
			return ui.Exit(ui.ExitConnection, err)
		case <-over:
			if beside.failed != nil {
				return ui.Exit(ui.ExitConnection, beside.failed)
			}
			return errNotWanted
		case <-resumed:
			serve.AskAlive(ctx, connection)
			beside.look()
		case <-ctx.Done():
			return nil
		}
	}
}

// waitAfter tells why there is no connection, and waits for the next try.
func (r *run) waitAfter(ctx context.Context, err error, next time.Duration, resumed <-chan struct{}) error {
	next = serve.DelayAfter(err, next)
	r.service.UI.Tell(serve.ConnectingAgain(err, next))
	r.service.Status.Problem(err)
	r.service.Status.Set(share.Waiting, nil)
	r.place.enter()
	return serve.Pause(ctx, next, resumed, r.place.held(), nil, nil)
}

// cause returns the error to show if err carries an exit status.
func cause(err error) error {
	var exit *ui.ExitError
	if errors.As(err, &exit) && exit.Err != nil {
		return exit.Err
	}
	return err
}
