package sshsession

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
)

// A follower follows the processes that are a target's bridge, one after the other.
type follower struct {
	dir      *share.Dir
	id       string
	patience time.Duration // for the first answer
	vacant   time.Time     // since when nobody answers; zero: somebody does
	reached  bool          // since then, somebody accepted a connection
}

// follow waits while another process is the target's bridge, and returns why it no longer is,
// or a *share.SilentError if it is and does not answer. up is called with each settled status,
// whether the bridge is up or not. makesWay is called with other statuses: true has the bridge
// asked to make way.
func (f *follower) follow(ctx context.Context, up func(share.Status), makesWay func(share.Status) bool) error {
	err := f.followOne(ctx, up, makesWay)
	if share.CannotBeAsked(err) || errors.Is(err, share.ErrTakenDown) {
		return err
	}
	return f.awaitSuccessor(ctx, err)
}

// followOne is follow on one connection.
func (f *follower) followOne(ctx context.Context, up func(share.Status), makesWay func(share.Status) bool) error {
	lease, err := f.dir.Lease(ctx, f.id)
	if err != nil {
		return err
	}
	defer lease.Close()
	f.reached = true
	lease.AnswerWithin(f.patience)
	for settled := false; ; {
		status, err := lease.Next()
		if err != nil {
			return err
		}
		f.vacant, f.reached = time.Time{}, false
		switch {
		case status.State.Settled():
			settled = true
			up(status)
		case settled && status.State == share.Silent: // the host would not answer our own connection either
		case status.State == share.Stopping: // Next returns an error when it has ended
		case makesWay(status):
			if _, err := f.dir.Yield(ctx, f.id); err != nil {
				return err
			}
		}
	}
}

// awaitSuccessor waits for a process that is about to listen or to end, but no longer than
// share.MaxVacancy. One that accepts and hangs up each time is of no use either.
func (f *follower) awaitSuccessor(ctx context.Context, err error) error {
	_ = retry.Sleep(ctx, share.LookPause, nil)
	if f.vacant.IsZero() {
		f.vacant = time.Now()
	}
	if time.Since(f.vacant) < share.MaxVacancy {
		return err
	}
	if held, heldErr := f.dir.Held(f.id); heldErr != nil || !held {
		f.vacant, f.reached = time.Time{}, false
		return err
	}
	silent := f.dir.Silent(f.id)
	silent.Refuses = f.reached
	return silent
}
