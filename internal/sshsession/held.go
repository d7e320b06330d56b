package sshsession

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/remoteside/prepare"
)

// heldMin and heldMax bound the time between two tries while another connection has the path
// on the host.
const (
	heldMin = 2 * time.Second
	heldMax = 2 * time.Minute
)

// noteHeld notes after a start whether another connection has the path on the host. That may
// end, so the start is to be tried again until there is a bridge. A -N that does nothing else
// ends instead, or connects again.
func (b *sessionBridge) noteHeld(up *bridge.Bridge, agent, err error) {
	var held *prepare.HeldError
	var hung *prepare.HungError
	isHeld := up == nil && errors.As(err, &held)
	b.held = up == nil && !b.run.isOnlyBridge() && (b.held || isHeld)
	switch {
	case isHeld:
		b.hindrance = share.Taken
	case agent != nil:
		b.hindrance = share.NoAgent
	case errors.As(err, &hung), errors.Is(err, context.DeadlineExceeded):
		b.hindrance = share.Silent
	default:
		b.hindrance = share.Waiting
	}
}

// nextTry returns a channel that gets a value when it is time to start again. It is nil if
// there is a bridge, or nothing to wait for.
func (b *sessionBridge) nextTry() <-chan time.Time {
	if !b.held {
		return nil
	}
	b.run.service.Status.Set(b.hindrance, nil)
	return time.After(b.pauses.Next())
}

// startAgain is start after nextTry. It is cut short when stopped, which may be nil, is closed.
func (b *sessionBridge) startAgain(ctx context.Context, stopped <-chan struct{}) {
	ctx, stop := retry.Until(ctx, stopped)
	defer stop()
	b.start(ctx)
	_ = b.announce(ctx)
}
