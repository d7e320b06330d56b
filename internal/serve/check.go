package serve

import (
	"context"

	"gpg-bridge/internal/bridge"
)

// A LocalCheck is the check of the local side. Once started it goes on while the host is being
// connected to; one that was not started is made by Wait.
type LocalCheck struct {
	local  *bridge.Local
	cancel context.CancelFunc
	done   chan struct{} // nil if it was not started
	found  bridge.Finding
}

func (c *LocalCheck) start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		c.found = c.local.Check(ctx)
	}()
}

// Wait returns what was found, or why ctx has ended.
func (c *LocalCheck) Wait(ctx context.Context) bridge.Finding {
	if c.done == nil {
		return c.local.Check(ctx)
	}
	select {
	case <-c.done:
		return c.found
	case <-ctx.Done():
		return bridge.Finding{Err: context.Cause(ctx)}
	}
}

// stop ends the check, and returns when it has ended.
func (c *LocalCheck) stop() {
	if c.done == nil {
		return
	}
	c.cancel()
	<-c.done
}
