package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
)

// An Up brings one host up in the background, for as long as nobody ends it.
type Up struct {
	UI      *ui.UI
	Dir     *share.Dir
	Home    *target.Home
	Spec    target.Spec
	Timeout time.Duration // how long to wait for it

	launcher *Launcher // nil until it is known what to start
	asked    time.Time
	last     share.Status
	touch    bool // the user was told to touch a token
}

// Run returns what to say of the host, and whether it is up.
func (u *Up) Run(ctx context.Context) (text, hint string, ok bool) {
	u.asked = time.Now()
	waiting, cancel := context.WithTimeout(ctx, u.Timeout)
	defer cancel()
	err := u.prepare(waiting)
	if err == nil {
		err = u.waitUntilUp(waiting)
	}
	switch {
	case u.launcher == nil:
		return err.Error(), usertext.Hint(err), false
	case ctx.Err() != nil:
		return "interrupted; it goes on trying", "see gpg-bridge status; end it with gpg-bridge down " + u.Spec.Host, false
	case err != nil && waiting.Err() == nil:
		return err.Error(), usertext.Hint(err), false
	}
	return u.describe()
}

// prepare finds out what is to be started for the host.
func (u *Up) prepare(ctx context.Context) error {
	t, err := resolve(ctx, Options{Spec: u.Spec, UI: u.UI}, u.Home, false)
	if err != nil {
		return err
	}
	u.launcher = &Launcher{Dir: u.Dir, Target: t, Spec: u.Spec, Pin: true}
	return nil
}

// waitUntilUp starts a bridge if there is none, and returns when gpg on the host is served,
// when a try has failed since we asked, or when ctx ends.
func (u *Up) waitUntilUp(ctx context.Context) error {
	for {
		err := u.watch(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, share.ErrNobody):
			return err
		}
		if err := retry.Sleep(ctx, share.LookPause, nil); err != nil { // a bridge ended, or another was quicker
			return err
		}
	}
}

// watch follows one process that is the bridge. Taking the lease makes a bridge that waits try
// again at once.
func (u *Up) watch(ctx context.Context) error {
	lease, err := u.launcher.Ensure(ctx)
	if err != nil {
		return err
	}
	defer lease.Close()
	for stays := false; ; {
		status, err := lease.Next()
		if err != nil {
			return err
		}
		if status.State == share.Stopping {
			continue // Next returns an error when it has ended
		}
		u.last = status
		u.tellTouch(status)
		if !stays {
			if stays, err = u.makeStay(ctx, status); err != nil {
				return err
			}
		}
		if stays && u.isSettled(status) {
			return nil
		}
	}
}

// tellTouch tells the user, once, that the log-in we have caused waits for a touch.
func (u *Up) tellTouch(status share.Status) {
	if u.touch || status.State != share.Connecting || status.Token == "" || status.Problem == nil || !status.Problem.At.After(u.asked) {
		return
	}
	if strings.Contains(status.Problem.Text, status.Token) {
		u.touch = true
		u.UI.Tell(u.Spec.Host + ": " + status.Problem.Text + "; " + status.Problem.Remedy)
	}
}

// makeStay makes sure that the bridge stays until somebody ends it. It reports false if that
// is to be tried again.
func (u *Up) makeStay(ctx context.Context, status share.Status) (bool, error) {
	id := u.launcher.Target.ID
	if status.Kind == share.Background {
		status, err := u.launcher.Dir.Pin(ctx, id)
		return err == nil && status.State != share.Stopping, err
	}
	_, err := u.launcher.Dir.Status(ctx, standbyID(id))
	if errors.Is(err, share.ErrNobody) {
		err = u.launcher.Start(ctx)
	}
	return err == nil, err
}

func (u *Up) isSettled(status share.Status) bool {
	return status.State == share.Up ||
		status.State.Hindered() && status.Problem != nil && status.Problem.At.After(u.asked)
}

// describe puts the last status of the host into words.
func (u *Up) describe() (text, hint string, ok bool) {
	status := u.last
	if status.State != share.Up {
		goesOn := "; it goes on trying"
		if status.Token != "" {
			goesOn = ""
		}
		if status.Problem == nil {
			return fmt.Sprintf("not up after %v, %s", u.Timeout, cmp.Or(string(status.State), "starting")) + goesOn,
				"see gpg-bridge status", false
		}
		return "not up: " + status.Problem.Text + goesOn, status.Problem.Remedy, false
	}
	if status.Kind == share.Session {
		return fmt.Sprintf("up: process %d, a gpg-bridge ssh, serves gpg at %s; one in the background takes over when it ends",
			status.PID, status.RemoteSocket), "", true
	}
	return "up: your agent serves gpg at " + status.RemoteSocket, "", true
}
