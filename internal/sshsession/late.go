package sshsession

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/ui"
)

// bridgePatience is how long a session waits for its bridge once there is a
// connection. A shell or command then begins within 2 seconds of when it would
// without a bridge, whatever GPG or another gpg-bridge does.
const bridgePatience = 1750 * time.Millisecond

// A slow link's own time is added: bridgeTrips is how many round trips a bridge takes after
// the first answer, to prepare the host, to bring it public keys and to request the forward,
// and one to spare. In all, a session waits for no longer than mostPatience.
const (
	bridgeTrips  = 4
	mostPatience = 6 * time.Second
)

// patienceLook is how often the deadline is checked again when bridgePatience is over.
const patienceLook = 250 * time.Millisecond

// shellPatience is how long a shell on the host may take to begin before another, requested
// after it, has begun and ended.
const shellPatience = time.Second

// await waits until the session may begin, at the latest at its deadline; the bridge then comes
// up beside the session. If there is no point in going on without a bridge, it waits for as
// long as that takes, and tells the user what for. An error says that there is no point in
// going on.
func (b *sessionBridge) await(ctx context.Context) error {
	if b.run.bridgeIsAll() {
		return b.insist(ctx)
	}
	requested := b.requested
	if !b.run.mayOverlap() {
		requested = nil
	}
	began := time.Now()
	late := time.NewTimer(bridgePatience)
	defer late.Stop()
	for {
		select {
		case <-b.settled:
			return nil
		case <-requested:
			return nil
		case <-ctx.Done():
			return nil
		case <-late.C:
			left := time.Until(b.deadline(began))
			if left <= 0 {
				b.beLate()
				return nil
			}
			late.Reset(min(left, patienceLook))
		}
	}
}

// deadline returns when a session stops waiting that has waited since began. A slow link
// counts only while the bridge waits for the host.
func (b *sessionBridge) deadline(began time.Time) time.Time {
	if stage, _ := b.progress.Now(); stage.On != serve.OnShell && stage.On != serve.OnHost {
		return began.Add(bridgePatience)
	}
	if b.run.master != nil { // whose connection's round trips are not known
		return began.Add(bridgePatience)
	}
	return hostDeadline(began, b.run.conn.Client.RoundTrip)
}

// hostDeadline is the deadline of a session that waits for the host. roundTrip is
// sshfwd.Client.RoundTrip. Before the server's first answer, which comes when the log-in is
// done, a session could not begin without a bridge either.
func hostDeadline(began time.Time, roundTrip func() (time.Duration, time.Time)) time.Time {
	due, most := began.Add(mostPatience), began.Add(mostPatience)
	if trip, first := roundTrip(); !first.IsZero() {
		due = first.Add(max(bridgePatience, bridgeTrips*trip))
	}
	if due.After(most) {
		return most
	}
	return due
}

// insist returns when there is a bridge, or an error if there is none or something is wrong
// with it.
func (b *sessionBridge) insist(ctx context.Context) error {
	defer b.run.service.NoticeWaiting(&b.progress)()
	select {
	case <-b.settled:
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return ui.Exit(ui.ExitConnection, context.Cause(ctx))
	case b.err != nil:
		return ui.Exit(ui.ExitConnection, b.err)
	}
	return nil
}

// beLate notes that the session begins without the bridge. tellLate tells the user when
// somebody could have used it: with the session's first output (tellBeforeOutput), at its end, or
// when it has printed nothing for a while.
func (b *sessionBridge) beLate() {
	b.mu.Lock()
	b.lateSince = time.Now()
	b.mu.Unlock()
	if b.run.master != nil { // nobody sees the session's first output
		b.tellLate()
	} else if !b.run.onlyForward() && !b.run.conn.Client.HasAhead() {
		b.tellLate()
		b.cancel(errInTheWay) // the preparation has the only session that the server grants
	}
	b.warning.Go(func() {
		silent := time.NewTimer(silentPatience)
		defer silent.Stop()
		select {
		case <-silent.C:
			b.tellLate()
		case <-b.settled:
		}
	})
}

// isLate reports whether the session has begun without the bridge.
func (b *sessionBridge) isLate() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isLateLocked()
}

// isLateLocked is isLate while mu is held.
func (b *sessionBridge) isLateLocked() bool { return !b.lateSince.IsZero() }

// Why a start that took too long was ended; they say nothing about the host's shell.
var (
	errInTheWay = errors.New("the session needs the place of the preparation")
	errTooLate  = errors.New("the session was over before the bridge was up")
	errLeft     = errors.New("the session is over") // by its user
)

// overdue returns how long a start may go on when the session has ended, and the cause with
// which it is ended. If the session did not wait for the bridge when it began, it does not wait
// at its end either. The cause is serve.ErrSessionOver if the host had time to answer: it was
// asked well before the session began, which has since ended.
func (b *sessionBridge) overdue(closing time.Duration) (time.Duration, error) {
	stage, since := b.progress.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	over := serve.ErrSessionOver
	if b.run.disconnected.Load() {
		over = errLeft
	}
	switch {
	case !b.isLateLocked():
		return closing, over
	case stage.On == serve.OnShell && b.lateSince.Sub(since) > shellPatience:
		return 0, over
	}
	return 0, errTooLate
}
