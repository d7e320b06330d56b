package background

import (
	"context"
	"errors"
	"strings"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
)

// standbySuffix, appended to a target's ID, gives the entry of its standby.
const standbySuffix = "5b"

func standbyID(id string) string { return id + standbySuffix }

// standbyOf returns the ID of the target if entry is that of a standby.
func standbyOf(entry string) (id string, ok bool) {
	id, ok = strings.CutSuffix(entry, standbySuffix)
	return id, ok && len(id) == target.IDDigits
}

// handoverPause is how long a bridge that made way waits for its successor.
const handoverPause = 2 * time.Second

// silentPause is the time between two looks of the standby at a bridge that does not answer.
const silentPause = 2 * time.Second

// A process is this process, a bridge in the background. It is the target's bridge or, if it
// is to stay, stands by while a session is the bridge. Then it has an entry of its own, where
// down and status find it. At any time it is one of the two.
type process struct {
	service *serve.Service
	dir     *share.Dir
	master  *master // the user's ssh whose connection may be used
	pin     bool
	over    bool   // only over the master's connection, and for as long as that lasts
	ready   func() // tells whoever started us that we can be asked

	entry *share.Holder // as the standby, or nil
}

// run is the target's bridge whenever no other process is, until nobody needs it any more.
func (p *process) run(ctx context.Context) error {
	defer p.leaveStandby()
	for ctx.Err() == nil && !p.isAsked() {
		holder, err := p.service.Status.Hold(p.dir, p.service.Target.ID)
		goOn := false
		switch {
		case err == nil:
			goOn, err = p.lead(ctx, holder)
		case !errors.Is(err, share.ErrHeld):
		case p.over:
			goOn, err = p.standAside(ctx), nil
		case p.pin:
			goOn, err = p.follow(ctx)
		default: // another process was quicker
			err = nil
			p.ready()
		}
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// lead runs the bridge. It reports whether to go on as the standby.
func (p *process) lead(ctx context.Context, holder *share.Holder) (goOn bool, err error) {
	defer holder.Close()
	if p.leaveStandby() != "" {
		return false, nil
	}
	if p.pin || p.over {
		holder.Pin()
	}
	p.service.Status.Set(share.Connecting, nil)
	p.ready()
	p.serveUntilAsked(ctx, holder)
	if p.over {
		_ = holder.Close()
		return holder.Ending() == share.HandedOver, nil
	}
	if ctx.Err() != nil || holder.Ending() != share.HandedOver || !holder.Pinned() {
		return false, nil
	}
	p.pin = true
	if ok, err := p.enterStandby(); err != nil || !ok {
		return false, err
	}
	_ = holder.Close()
	p.letPass(ctx)
	return true, nil
}

// letPass waits until the process for which we made way is the bridge.
func (p *process) letPass(ctx context.Context) {
	deadline := time.Now().Add(handoverPause)
	for ctx.Err() == nil && !p.isAsked() && time.Now().Before(deadline) {
		if held, err := p.dir.Held(p.service.Target.ID); held || err != nil {
			return
		}
		_ = retry.Sleep(ctx, 5*share.LookPause, nil)
	}
}

// follow waits, as the standby, while another process is the bridge, and reports whether to go
// on. It does not wait for a bridge in the background, which makes this process needless.
func (p *process) follow(ctx context.Context) (goOn bool, err error) {
	status, err := p.dir.Status(ctx, p.service.Target.ID)
	if p.entry != nil && share.CannotBeAsked(err) {
		_ = retry.Sleep(ctx, silentPause, p.entry.Stopped())
		return true, nil
	}
	if err == nil && status.Kind == share.Background {
		status, err = p.dir.Pin(ctx, p.service.Target.ID)
		if err == nil && status.State != share.Stopping {
			p.ready()
			return false, nil
		}
	}
	if err == nil && status.State != share.Stopping {
		if p.entry == nil {
			if ok, err := p.enterStandby(); err != nil || !ok {
				return false, err
			}
		}
		return !errors.Is(p.waitForEnd(ctx), share.ErrTakenDown), nil
	}
	if err != nil && !errors.Is(err, share.ErrNobody) {
		return false, err
	}
	_ = retry.Sleep(ctx, share.LookPause, nil) // it is about to listen, or to end
	return true, nil
}

// waitForEnd returns why the bridge whose standby we are has ended, or an error when we are to
// end.
func (p *process) waitForEnd(ctx context.Context) error {
	ctx, stop := retry.Until(ctx, p.entry.Stopped())
	defer stop()
	watch, err := p.dir.Watch(ctx, p.service.Target.ID)
	if err != nil {
		return err
	}
	defer watch.Close()
	for err == nil {
		_, err = watch.Next()
	}
	return err
}

// enterStandby reports false where another process is the standby.
func (p *process) enterStandby() (bool, error) {
	defer p.ready()
	status := serve.NewStatus(p.service.Target, share.Background)
	status.Set(share.Standby, nil)
	entry, err := status.Hold(p.dir, standbyID(p.service.Target.ID))
	if err != nil {
		if errors.Is(err, share.ErrHeld) {
			err = nil
		}
		return false, err
	}
	entry.Pin()
	p.entry = entry
	return true, nil
}

// leaveStandby returns why somebody had asked it to end, or "".
func (p *process) leaveStandby() share.Ending {
	if p.entry == nil {
		return ""
	}
	_ = p.entry.Close() // from now on nobody can ask
	asked := p.entry.Ending()
	p.entry = nil
	return asked
}

// isAsked reports whether somebody has asked the standby to end.
func (p *process) isAsked() bool { return p.entry != nil && isClosed(p.entry.Stopped()) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
