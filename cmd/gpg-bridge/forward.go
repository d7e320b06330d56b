package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/retry"
	"gpg-bridge/sshfwd"
)

const (
	// reconnectMin and reconnectMax bound the time between two tries.
	reconnectMin = time.Second
	reconnectMax = time.Minute

	// steady is how long a connection must have held for the next loss to be
	// a first one.
	steady = time.Minute

	// aliveTimeout is how long the host has to answer after a suspend.
	aliveTimeout = 5 * time.Second
)

// keepForwarding serves until a signal comes. A connection that was there and
// is lost is made again, for as long as it takes; one that cannot be made in
// the first place is an error, as with ssh.
func (r *sshRun) keepForwarding(ctx context.Context) error {
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
		if !served || hopeless(err) {
			return err
		}
		if !since.IsZero() && time.Since(since) > steady {
			backoff.Reset()
		}
		delay := backoff.Next()
		r.ui.tell(fmt.Sprintf("%v; connecting again in %v", cause(err), delay.Round(time.Second/10)))
		if retry.Sleep(ctx, delay, resumed) != nil {
			return nil
		}
	}
}

// serve says what is forwarded where, and waits until ctx or the connection
// ends.
func (r *sshRun) serve(ctx context.Context, b *bridge.Bridge, resumed <-chan struct{}, served *bool) error {
	if err := b.Verified(ctx); err != nil && ctx.Err() == nil {
		return &exitError{exitConnection, err}
	}
	*served = true
	r.ui.tell(fmt.Sprintf("your agent serves gpg on %s at %s", r.flags.options.Destination, sshfwd.Printable(b.Path())))
	ended := make(chan error, 1)
	go func() { ended <- r.client.Wait() }() // ends with the connection, which once closes
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
	r.client.CheckAlive(ctx)
}

// hopeless reports whether trying again cannot help, or must not be done: a
// changed host key is for the user to judge.
func hopeless(err error) bool {
	var key *sshfwd.HostKeyError
	var config *sshfwd.ConfigError
	var unsupported *sshfwd.UnsupportedError
	return errors.As(err, &key) || errors.As(err, &config) || errors.As(err, &unsupported)
}

// cause is the error to show of one that carries an exit code.
func cause(err error) error {
	var exit *exitError
	if errors.As(err, &exit) && exit.err != nil {
		return exit.err
	}
	return err
}
