package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
)

// standbySuffix makes the ID of a target's standby of the target's ID: its entry
// beside the bridge's.
const standbySuffix = "5b"

// targetIDDigits is the length of a target's ID; a standby's is longer.
const targetIDDigits = 20

func standbyID(id string) string { return id + standbySuffix }

// standbyOf returns the ID of the target that id is the standby of.
func standbyOf(id string) (target string, ok bool) {
	target, ok = strings.CutSuffix(id, standbySuffix)
	return target, ok && len(target) == targetIDDigits
}

// handoverPause is how long a bridge that made way waits for its successor.
const handoverPause = 2 * time.Second

// A standing is a bridge in the background with its place: as the target's
// bridge, or, if it is to stay, behind a session that is the bridge, in an entry
// of its own, where down and status find it. At any time it has one of the two.
type standing struct {
	keep  *keepFlags
	run   *sshRun
	dir   *share.Dir
	ready func() // lets go of whoever started us

	entry *share.Holder // as the standby, or nil
}

// stand is the bridge whenever nobody else is, until nobody needs it any more.
func (s *standing) stand(ctx context.Context) error {
	defer s.leaveStandby()
	for ctx.Err() == nil && !s.isAsked() {
		holder, err := s.run.board.hold(s.dir, s.run.target.id)
		goOn := false
		switch {
		case err == nil:
			goOn, err = s.lead(ctx, holder)
		case !errors.Is(err, share.ErrHeld):
		case s.keep.pin:
			goOn, err = s.follow(ctx)
		default: // another was quicker
			err = nil
			s.ready()
		}
		if err != nil || !goOn {
			return err
		}
	}
	return nil
}

// lead is the bridge. It reports whether to go on as the standby.
func (s *standing) lead(ctx context.Context, holder *share.Holder) (goOn bool, err error) {
	defer holder.Close()
	if s.leaveStandby() != "" {
		return false, nil
	}
	if s.keep.pin {
		holder.Pin()
	}
	s.run.holder = holder
	s.run.board.set(share.Connecting, nil)
	s.ready()
	err = s.run.forwardUntilAsked(ctx, func(ctx context.Context) { _ = holder.Abandoned(ctx, s.keep.linger) })
	if err != nil || ctx.Err() != nil || holder.Ending() != share.HandedOver || !holder.Pinned() {
		return false, err
	}
	s.keep.pin = true
	if ok, err := s.enterStandby(); err != nil || !ok {
		return false, err
	}
	_ = holder.Close()
	s.letPass(ctx)
	return true, nil
}

// letPass waits until the process that we made way for is the bridge.
func (s *standing) letPass(ctx context.Context) {
	deadline := time.Now().Add(handoverPause)
	for ctx.Err() == nil && !s.isAsked() && time.Now().Before(deadline) {
		if held, err := s.dir.Held(s.run.target.id); held || err != nil {
			return
		}
		_ = retry.Sleep(ctx, 5*holderPause, nil)
	}
}

// follow waits while another process is the bridge: as the standby behind a
// session, and not at all behind a bridge in the background, which stays in our
// place. It reports whether to go on.
func (s *standing) follow(ctx context.Context) (goOn bool, err error) {
	status, err := s.dir.Status(ctx, s.run.target.id)
	if err == nil && status.Kind == share.Background {
		status, err = s.dir.Pin(ctx, s.run.target.id)
		if err == nil && status.State != share.Stopping {
			s.ready()
			return false, nil
		}
	}
	if err == nil && status.State != share.Stopping {
		if s.entry == nil {
			if ok, err := s.enterStandby(); err != nil || !ok {
				return false, err
			}
		}
		return !errors.Is(s.waitForEnd(ctx), share.ErrTakenDown), nil
	}
	if err != nil && !errors.Is(err, share.ErrNobody) {
		return false, err
	}
	_ = retry.Sleep(ctx, holderPause, nil) // it is about to listen, or to end
	return true, nil
}

// waitForEnd returns why the bridge that we are the standby of has ended, or an
// error when we are to end.
func (s *standing) waitForEnd(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() {
		defer cancel()
		select {
		case <-s.entry.Stopped():
		case <-ctx.Done():
		}
	})
	watch, err := s.dir.Watch(ctx, s.run.target.id)
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
func (s *standing) enterStandby() (bool, error) {
	defer s.ready()
	board := newBoard(s.run.target, share.Background, s.run.flags.local.agentSocket)
	board.set(share.Standby, nil)
	entry, err := board.hold(s.dir, standbyID(s.run.target.id))
	if err != nil {
		if errors.Is(err, share.ErrHeld) {
			err = nil
		}
		return false, err
	}
	entry.Pin()
	s.entry = entry
	return true, nil
}

// leaveStandby returns why somebody had asked it to end, or "".
func (s *standing) leaveStandby() share.Ending {
	if s.entry == nil {
		return ""
	}
	_ = s.entry.Close() // then nobody can ask any more
	asked := s.entry.Ending()
	s.entry = nil
	return asked
}

// isAsked reports whether somebody has asked the standby to end.
func (s *standing) isAsked() bool { return s.entry != nil && isClosed(s.entry.Stopped()) }
