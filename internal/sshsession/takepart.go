package sshsession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/usertext"
)

const (
	// otherPatience is how long another process that is the bridge may take to answer.
	// It answers at once, unless it is stopped or hangs.
	otherPatience = time.Second

	// besidePause is how often a bridge beside one that hangs tries to take its
	// lock.
	besidePause = time.Second
)

// takePart makes this process the bridge of its target. If another process is, it uses that
// one, and takes over when it ends.
func (b *sessionBridge) takePart(ctx context.Context) {
	if b.run.takenDown.Load() {
		return
	}
	dir, err := share.Open()
	if err != nil {
		b.beAlone(ctx, err)
		return
	}
	defer dir.Close()
	if err := b.replaceOther(ctx, dir); share.CannotBeAsked(err) && b.beBeside(ctx, dir, err) {
		return
	}
	other := &follower{dir: dir, id: b.run.service.Target.ID, patience: otherPatience}
	for ctx.Err() == nil {
		holder, err := b.run.service.Status.Hold(dir, other.id)
		switch {
		case err == nil:
			b.beHolder(ctx, holder)
			return
		case !errors.Is(err, share.ErrHeld):
			b.beAlone(ctx, err)
			return
		}
		err = b.useOther(ctx, other)
		if errors.Is(err, share.ErrTakenDown) {
			b.run.noteTakenDown()
			if !b.isSettled() {
				b.err = share.ErrTakenDown
			}
			return // for as long as this session lives
		}
		if share.CannotBeAsked(err) && ctx.Err() == nil && b.beBeside(ctx, dir, err) {
			return
		}
	}
}

// replaceOther is --takeover. It returns why the other cannot be replaced.
func (b *sessionBridge) replaceOther(ctx context.Context, dir *share.Dir) error {
	if !b.run.service.Target.Spec.Takeover {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serve.EndTimeout)
	defer cancel()
	b.progress.WaitFor(serve.Stage{On: serve.OnOther})
	watch, err := dir.Watch(ctx, b.run.service.Target.ID)
	if err == nil {
		watch.AnswerWithin(otherPatience)
		_, err = watch.Next()
		_ = watch.Close()
	}
	if err == nil {
		_, err = dir.Replace(ctx, b.run.service.Target.ID)
	}
	return err
}

// beHolder is the bridge until ctx ends or somebody asks it to make way.
func (b *sessionBridge) beHolder(ctx context.Context, holder *share.Holder) {
	defer holder.Close()
	b.start(ctx)
	b.settle()
	if b.bridge() == nil && !b.held {
		return // what failed here may succeed in another process
	}
	if err := b.announceUnless(ctx, holder.Stopped()); err != nil && b.run.isOnlyBridge() {
		b.failed = err
		b.stop(ctx)
		return
	}
	b.serveAs(ctx, holder)
}

// announceUnless is announce, cut short when stopped is closed.
func (b *sessionBridge) announceUnless(ctx context.Context, stopped <-chan struct{}) error {
	ctx, stop := retry.Until(ctx, stopped)
	defer stop()
	return b.announce(ctx)
}

// beAlone is a bridge that other processes cannot find; why says the reason.
func (b *sessionBridge) beAlone(ctx context.Context, why error) {
	b.excused = true
	b.warn(&aloneError{why})
	b.start(ctx)
	b.settle()
	_ = b.announce(ctx)
	for again := b.nextTry(); again != nil || b.bridge() != nil; again = b.nextTry() {
		select {
		case <-ctx.Done():
			return
		case <-again:
			b.startAgain(ctx, nil)
		}
	}
}

// An aloneError says that the user's other processes cannot find this one.
type aloneError struct{ why error }

func (e *aloneError) Error() string { return e.why.Error() }

func (e *aloneError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *aloneError) Hint() string {
	return cmp.Or(usertext.Hint(e.why), "this session has a bridge of its own, which gpg-bridge status and down do not find; see that the directory can be written to")
}

// announce tells the user once that a process without a session serves gpg on the host. The
// error says what is wrong with the path there.
func (b *sessionBridge) announce(ctx context.Context) error {
	up, r := b.bridge(), b.run
	if up == nil || !r.onlyForward() {
		return nil
	}
	b.announced.Do(func() {
		if err := up.Verified(ctx); ctx.Err() == nil {
			b.verdict = err
		}
		if b.verdict == nil && ctx.Err() == nil {
			r.service.TellServed(up)
		}
	})
	return b.verdict
}

// look has the bridge of this process look at its path now.
func (b *sessionBridge) look() {
	if up := b.bridge(); up != nil {
		up.Look()
	}
}

// serveAs runs the bridge, which is up, or will be when the path on the host is free, until ctx
// ends or another process wants to be the bridge.
func (b *sessionBridge) serveAs(ctx context.Context, holder *share.Holder) {
	again := b.nextTry()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-holder.Stopped():
			ended = true
			if holder.Ending() == share.TakenDown {
				b.run.noteTakenDown()
			}
		case <-holder.Leased():
			b.look()
			if again != nil {
				again = time.After(0)
			}
		case <-again:
			b.startAgain(ctx, holder.Stopped())
			again = b.nextTry()
		}
	}
	b.stop(ctx)
}

// useOther waits while another process is the bridge. One that is not up and not coming up is
// asked to make way: it may lack what this connection has, such as a password. useOther returns
// why the other is no longer the bridge, or is of no use.
func (b *sessionBridge) useOther(ctx context.Context, other *follower) error {
	if !b.isSettled() {
		b.progress.WaitFor(serve.Stage{On: serve.OnOther})
	}
	return other.follow(ctx, func(status share.Status) {
		b.setSocket(status.RemoteSocket)
		if !b.isSettled() && !b.run.onlyForward() && status.State.Hindered() && status.Problem != nil {
			b.err = &share.UnservedError{Host: b.run.service.Target.Name, Problem: status.Problem}
		}
		b.tellOther(status)
		b.settle()
	}, func(status share.Status) bool {
		b.progress.WaitFor(serve.Stage{On: serve.OnOther, PID: status.PID})
		return status.State == share.Waiting || status.Kind == share.Background
	})
}

// tellOther tells the user of a -N, once for each process that is the bridge, that it waits
// for that one to end.
func (b *sessionBridge) tellOther(status share.Status) {
	if !b.run.onlyForward() || b.told == status.PID {
		return
	}
	b.told = status.PID
	how := ""
	if status.State.Hindered() && status.Problem != nil {
		how = fmt.Sprintf(" (%s: %s)", status.State, usertext.Printable(status.Problem.Text))
	}
	b.run.service.UI.Tell(fmt.Sprintf("process %d already serves gpg on %s at %s%s; this one takes over when it ends",
		status.PID, b.run.service.Target.Spec.Host, usertext.Printable(status.RemoteSocket), how))
}

// beBeside is a bridge without the lock, while the process that has it is of no use: mostly
// it is stopped, or hangs. Its forward does not answer either, and the host takes it for a
// dead one. If yet another connection serves the path, this process does when that ends. It
// takes the lock as soon as that is free. beBeside returns true when it has ended, and false at
// once if there can be no such bridge.
func (b *sessionBridge) beBeside(ctx context.Context, dir *share.Dir, why error) bool {
	if b.beside { // it did not help
		_ = retry.Sleep(ctx, besidePause, nil)
		return false
	}
	b.beside, b.excused = true, true
	b.warn(&besideError{why})
	b.start(ctx)
	b.settle()
	if b.bridge() == nil && !b.held {
		return false
	}
	_ = b.announce(ctx)
	look := time.NewTicker(besidePause)
	defer look.Stop()
	for again := b.nextTry(); ; {
		select {
		case <-ctx.Done():
			return true
		case <-again:
			b.startAgain(ctx, nil)
			again = b.nextTry()
		case <-look.C:
			if holder, err := b.run.service.Status.Hold(dir, b.run.service.Target.ID); err == nil {
				defer holder.Close()
				b.serveAs(ctx, holder)
				return true
			}
		}
	}
}

// A besideError says that another process is the bridge, and of no use.
type besideError struct{ why error }

func (e *besideError) Error() string {
	return fmt.Sprintf("%v; this one serves gpg on the host as soon as it can", e.why)
}

func (e *besideError) Unwrap() error { return e.why }
