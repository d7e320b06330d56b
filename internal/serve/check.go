package serve

import (
	"context"

	"gpg-bridge/internal/bridge"
)

// A LocalCheck is the check of the local side while the host is being connected to. The nil
// *LocalCheck is none.
type LocalCheck struct {
	cancel context.CancelFunc
	done   chan struct{}
	found  bridge.Finding
}

func startCheck(ctx context.Context, local *bridge.Local) *LocalCheck {
	ctx, cancel := context.WithCancel(ctx)
	c := &LocalCheck{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.found = local.Check(ctx)
	}()
	return c
}

// Wait returns what was found, or why ctx has ended.
func (c *LocalCheck) Wait(ctx context.Context) bridge.Finding {
	select {
	case <-c.done:
		return c.found
	case <-ctx.Done():
		return bridge.Finding{Err: context.Cause(ctx)}
	}
}

// stop ends the check, and returns when it has ended.
func (c *LocalCheck) stop() {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
}
