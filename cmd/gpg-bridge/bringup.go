package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
)

// A bringUp is a bridge on its way. Its goroutines end with it; takeDown waits
// for them.
type bringUp struct {
	requested chan struct{} // closed when the session may start beside the rest
	done      chan struct{} // closed when up and err are there
	up        *bridge.Bridge
	err       error

	cancel  context.CancelFunc
	warning sync.WaitGroup
}

// bringUp begins to bring the bridge up, and to open the session's channel
// beside it. There may be a bridge although the error says that the local agent
// cannot be used: gpg on the host is then told so, and starts no agent of its
// own.
func (r *sshRun) bringUp(ctx context.Context, local *bridge.Local, found bridge.Finding) *bringUp {
	ctx, cancel := context.WithCancel(ctx)
	u := &bringUp{requested: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	options := bridge.Options{
		RemoteSocket: r.flags.remote.socket,
		Takeover:     r.flags.remote.takeover,
		Warn:         r.ui.warn,
		Log:          r.ui.log(r.flags.verbose),
	}
	if found.Err == nil {
		options.Requested = func() { close(u.requested) }
	}
	go func() {
		defer close(u.done)
		u.up, u.err = bridge.Start(ctx, r.client, local, found, options)
		if found.Err != nil {
			u.err = fmt.Errorf("the local agent cannot be used: %w", found.Err)
		}
	}()
	if !r.onlyForward() {
		r.client.OpenAhead()
	}
	return u
}

// isRequested waits until it is known whether the session may start beside the
// rest, or the bridge is there or has failed.
func (u *bringUp) isRequested() bool {
	select {
	case <-u.requested:
		return true
	case <-u.done:
		return false
	}
}

// bridge returns the bridge if it is there by now.
func (u *bringUp) bridge() *bridge.Bridge {
	select {
	case <-u.done:
		return u.up
	default:
		return nil
	}
}

// warnOnce tells what failed, at once if it is known and else when it is.
func (u *bringUp) warnOnce(ctx context.Context, ui *ui) {
	warn := func() {
		if u.err != nil && ctx.Err() == nil {
			ui.warn(u.err)
		}
	}
	select {
	case <-u.done:
		warn()
	default:
		u.warning.Go(func() {
			<-u.done
			warn()
		})
	}
}

// takeDown tidies up on the host. It has its own time: ctx is over when a
// signal ended the session.
func (r *sshRun) takeDown(ctx context.Context, u *bringUp) {
	timeout := closeTimeout
	if r.disconnected { // perhaps because the link is dead
		timeout = hurriedCloseTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	late := time.AfterFunc(timeout, u.cancel)
	<-u.done
	late.Stop()
	u.cancel()
	u.warning.Wait()
	if u.up == nil {
		return
	}
	if err := u.up.Close(ctx); err != nil {
		r.ui.log(r.flags.verbose).Debug("the bridge was not taken down cleanly", "error", err)
	}
}
