package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
)

// A bringUp is a bridge on its way, in this process or already there in another.
// Its goroutine ends with it; takeDown waits for it.
type bringUp struct {
	run   *sshRun
	local *bridge.Local
	board *board

	requested chan struct{} // closed when the session may start beside the rest
	settled   chan struct{} // closed when up and err are there
	err       error         // why there is no bridge, or what is wrong with it

	cancel  context.CancelFunc
	ended   chan struct{} // closed when the goroutine has ended
	warning sync.WaitGroup

	mu     sync.Mutex
	up     *bridge.Bridge // of this process; also later, when another's has ended
	socket string         // on the host, whoever serves it
}

// bringUp begins to bring the bridge up, and to open the session's channel
// beside it. There may be a bridge although the error says that the local agent
// cannot be used: gpg on the host is then told so, and starts no agent of its
// own.
func (r *sshRun) bringUp(ctx context.Context, local *bridge.Local, found bridge.Finding) *bringUp {
	ctx, cancel := context.WithCancel(ctx)
	u := &bringUp{
		run: r, local: local, board: r.board,
		requested: make(chan struct{}), settled: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
	}
	if !r.onlyForward() {
		r.client.OpenAhead()
		r.askPTYAhead()
	}
	go func() {
		defer close(u.ended)
		if r.holder != nil {
			u.start(ctx, found)
			close(u.settled)
			return
		}
		u.takePart(ctx, found)
	}()
	return u
}

// takePart makes this process the bridge of its target, unless another is: then
// that one is used, and followed when it ends.
func (u *bringUp) takePart(ctx context.Context, found bridge.Finding) {
	settle := sync.OnceFunc(func() { close(u.settled) })
	defer settle()
	dir, err := share.Open()
	if err != nil {
		u.run.ui.warn(err)
		u.start(ctx, found)
		return
	}
	defer dir.Close()
	id := u.run.target.id
	if u.run.flags.remote.takeover {
		_, _ = dir.Replace(ctx, id)
	}
	for ctx.Err() == nil {
		holder, err := u.board.hold(dir, id)
		switch {
		case err == nil:
			u.beHolder(ctx, holder, found, settle)
			return
		case !errors.Is(err, share.ErrHeld):
			u.run.ui.warn(err)
			u.start(ctx, found)
			return
		}
		if errors.Is(u.useOther(ctx, dir, id, settle), share.ErrTakenDown) {
			if !isClosed(u.settled) {
				u.err = share.ErrTakenDown
			}
			return // for as long as this session lives
		}
		if isClosed(u.settled) && ctx.Err() == nil {
			found = u.local.Check(ctx) // the other may have lived for long
		}
	}
}

// beHolder is the bridge until ctx ends or somebody asks it to make way.
func (u *bringUp) beHolder(ctx context.Context, holder *share.Holder, found bridge.Finding, settle func()) {
	defer holder.Close()
	u.start(ctx, found)
	settle()
	if u.bridge() == nil {
		return // what failed here may succeed in another process
	}
	select {
	case <-ctx.Done():
	case <-holder.Stopped():
	}
	u.stop(ctx)
}

// useOther waits while another process is the bridge. One that is not up and not
// coming up makes way: it may lack what this connection was given, a password.
// It returns why the other is not the bridge any more.
func (u *bringUp) useOther(ctx context.Context, dir *share.Dir, id string, settle func()) error {
	return followOther(ctx, dir, id, func(status share.Status) {
		u.setSocket(status.RemoteSocket)
		settle()
	}, func(status share.Status) bool {
		return status.State == share.Waiting || status.Kind == share.Background
	})
}

// start brings the bridge of this process up.
func (u *bringUp) start(ctx context.Context, found bridge.Finding) {
	r := u.run
	options := bridge.Options{
		RemoteSocket: r.flags.remote.socket,
		Takeover:     r.flags.remote.takeover,
		Warn:         func(err error) { u.board.problem(err); r.ui.warn(err) },
		LookFor:      r.lookFor(),
		Stats:        u.board.stats,
		Log:          r.ui.log(r.flags.verbose),
	}
	u.board.agent(u.local.Agent.Path())
	if found.Err == nil && !isClosed(u.settled) {
		options.Requested = func() { close(u.requested) }
	}
	up, err := bridge.Start(ctx, r.link, u.local, found, options)
	if found.Err != nil {
		err = fmt.Errorf("the local agent cannot be used: %w", found.Err)
	}
	u.mu.Lock()
	u.up = up
	u.mu.Unlock()
	if up != nil {
		u.setSocket(up.Path())
		u.board.set(share.Up, up)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return
	case isClosed(u.settled): // the session has long begun
		r.ui.warn(err)
	default:
		u.err = err
	}
	u.board.problem(err)
}

// stop takes the bridge of this process down. It has its own time: ctx is over
// when a signal ended the session.
func (u *bringUp) stop(ctx context.Context) {
	u.mu.Lock()
	up := u.up
	u.up = nil
	u.mu.Unlock()
	if up == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.run.closingTime())
	defer cancel()
	u.board.set(share.Stopping, nil)
	if err := up.Close(ctx); err != nil {
		u.run.ui.log(u.run.flags.verbose).Debug("the bridge was not taken down cleanly", "error", err)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// isRequested waits until it is known whether the session may start beside the
// rest, or the bridge is there or has failed.
func (u *bringUp) isRequested() bool {
	select {
	case <-u.requested:
		return true
	case <-u.settled:
		return false
	}
}

// bridge returns the bridge of this process, if there is one by now.
func (u *bringUp) bridge() *bridge.Bridge {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.up
}

// path is the socket on the host, "" while it is not known.
func (u *bringUp) path() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.socket
}

func (u *bringUp) setSocket(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.socket = path
}

// warnOnce tells what failed, at once if it is known and else when it is.
func (u *bringUp) warnOnce(ctx context.Context, ui *ui) {
	warn := func() {
		if u.err != nil && ctx.Err() == nil {
			ui.warn(u.err)
		}
	}
	if isClosed(u.settled) {
		warn()
		return
	}
	u.warning.Go(func() {
		<-u.settled
		warn()
	})
}

// closingTime bounds the tidying up on the host.
func (r *sshRun) closingTime() time.Duration {
	if r.disconnected.Load() { // perhaps because the link is dead
		return hurriedCloseTimeout
	}
	return closeTimeout
}

// takeDown ends what bringUp began, and tidies up on the host. A start that is
// under way gets the time that it has to end well.
func (r *sshRun) takeDown(ctx context.Context, u *bringUp) {
	late := time.AfterFunc(r.closingTime(), u.cancel)
	<-u.settled
	late.Stop()
	u.cancel()
	<-u.ended
	u.warning.Wait()
	u.stop(ctx)
}
