package sshsession

import (
	"context"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
)

// A sessionBridge is the bridge of a session or of -N, coming up or up, in this process or in
// another. It has one goroutine, for which takeDown waits.
type sessionBridge struct {
	run      *run
	local    *bridge.Local
	check    *serve.LocalCheck
	progress serve.Progress

	requested chan struct{} // closed when the session may start concurrently with what is left to do
	settled   chan struct{} // closed by settle, when up and err are set
	settle    func()
	err       error // why there is no bridge, or what is wrong with it

	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when the goroutine has ended
	warning sync.WaitGroup

	mu        sync.Mutex
	up        *bridge.Bridge // of this process; may come later, when another's has ended
	socket    string         // on the host, whoever serves it
	lateSince time.Time      // when the session began without the bridge; zero: it has not
	said      bool           // the user was told that something is wrong

	// Owned by the goroutine.
	told      int         // the process of which tellOther has told the user
	beside    bool        // a bridge beside one that hangs was tried
	excused   bool        // the user knows why there may be no bridge
	held      bool        // another connection had the path, and the start is to be tried again
	hindrance share.State // why there was no bridge after the last try
	pauses    retry.Backoff
	failed    error     // why a -N that was to take over later could not; read after ended
	announced sync.Once // see announce
	verdict   error     // of announce
}

// bringUp begins to bring the bridge up. There may be a bridge although err says that the local
// agent cannot be used: gpg on the host is then told so, and starts no agent of its own.
func (r *run) bringUp(ctx context.Context, local *bridge.Local, check *serve.LocalCheck) *sessionBridge {
	ctx, cancel := context.WithCancelCause(ctx)
	b := &sessionBridge{
		run: r, local: local, check: check,
		pauses:    retry.Backoff{Min: heldMin, Max: heldMax},
		requested: make(chan struct{}), settled: make(chan struct{}), ended: make(chan struct{}), cancel: cancel,
	}
	b.settle = sync.OnceFunc(func() { close(b.settled) })
	go func() {
		defer close(b.ended)
		defer b.settle()
		b.takePart(ctx)
	}()
	return b
}

// find returns what the check of the local side found. If another process has been the bridge
// since, perhaps for long, the check is made again.
func (b *sessionBridge) find(ctx context.Context) bridge.Finding {
	if b.isSettled() {
		return b.local.Check(ctx)
	}
	return b.check.Wait(ctx)
}

// start brings the bridge of this process up.
func (b *sessionBridge) start(ctx context.Context) {
	again := b.held
	attempt := serve.Attempt{
		Connection: b.run.conn, Local: b.local, Progress: &b.progress, Find: b.find, Warn: b.warn,
		Again: func() bool { return again && b.bridge() == nil },
	}
	if !b.isSettled() {
		attempt.Requested = func() { close(b.requested) }
	}
	if b.run.showsMOTD() {
		attempt.MOTD = b.showMOTD
	}
	up, agent, err := b.run.service.Start(ctx, attempt)
	b.noteStart(ctx, up, agent, err)
}

// noteStart notes the result of a start, and tells the user. agent says why the local agent
// cannot be used; err says what is wrong with the bridge, or why there is none.
func (b *sessionBridge) noteStart(ctx context.Context, up *bridge.Bridge, agent, err error) {
	r := b.run
	b.noteHeld(up, agent, err)
	if agent != nil {
		err = serve.AgentError(agent)
	}
	b.mu.Lock()
	b.up = up
	b.mu.Unlock()
	if up != nil {
		b.setSocket(up.Path())
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return
	case b.held && b.excused && !r.bridgeIsAll():
		r.service.Log.Debug("the path on the host is another's", "error", err)
	case !b.isSettled():
		b.err = err
	case r.isOnlyBridge():
		b.failed = err
	default: // the session has long begun
		b.warn(err)
	}
	b.excused = b.excused || b.held
	b.run.service.Status.Problem(err)
}

// stop takes down the bridge of this process, even if a signal has ended ctx.
func (b *sessionBridge) stop(ctx context.Context) {
	b.mu.Lock()
	up := b.up
	b.up = nil
	b.mu.Unlock()
	if up == nil {
		return
	}
	b.run.service.TakeDown(ctx, up, b.run.closingTime())
}

// isSettled reports whether it is known what the session begins with: a bridge, or why there
// is none.
func (b *sessionBridge) isSettled() bool { return isClosed(b.settled) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bridge returns the bridge of this process, nil if there is none by now.
func (b *sessionBridge) bridge() *bridge.Bridge {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up
}

// path returns the socket on the host, "" while it is not known.
func (b *sessionBridge) path() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.socket
}

func (b *sessionBridge) setSocket(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.socket = path
}

// warnOnce tells the user what failed, now if it is known and otherwise as soon as it is.
func (b *sessionBridge) warnOnce(ctx context.Context) {
	warn := func() {
		if b.err != nil && ctx.Err() == nil && !b.toldLate() {
			b.warn(b.err)
		}
	}
	if b.isSettled() {
		warn()
		return
	}
	b.warning.Go(func() {
		<-b.settled
		warn()
	})
}

// hurriedCloseTimeout is for a user who left with the escape ~.
const hurriedCloseTimeout = time.Second

// closingTime returns how long tidying up on the host may take.
func (r *run) closingTime() time.Duration {
	if r.disconnected.Load() { // perhaps because the link is dead
		return hurriedCloseTimeout
	}
	return serve.CloseTimeout
}

// takeDown ends what bringUp began, and tidies up on the host. A start that is under way gets
// some time to end in order, unless it hangs.
func (b *sessionBridge) takeDown(ctx context.Context) {
	grace, why := b.overdue(b.run.closingTime())
	late := time.AfterFunc(grace, func() { b.cancel(why) })
	<-b.settled
	late.Stop()
	b.cancel(why)
	<-b.ended
	b.warning.Wait()
	b.stop(ctx)
}
