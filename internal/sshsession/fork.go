package sshsession

import (
	"context"
	"time"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/sshmaster"
	"gpg-bridge/internal/ui"
)

// forks reports whether the session, or -N, is to go to the background when it is logged in (-f,
// ForkAfterAuthentication).
func (r *run) forks() bool { return r.overSSH && sshmaster.IsFork(r.config) }

// fork has the user's ssh log in, and the session go to the background. The bridge is in a process
// of its own, which ends with the session, or with -N with the connection.
func (r *run) fork(ctx context.Context) error {
	if err := r.connectSSH(ctx); err != nil {
		return err
	}
	r.master.Leave()
	defer r.disconnect(ctx)
	var session *sshmaster.Pending
	if !r.onlyForward() {
		var err error
		if session, err = r.master.Pending(); err != nil {
			return ui.Exit(ui.ExitConnection, err)
		}
		defer session.Cancel()
	}
	if err := r.leaveBridge(ctx, session); err != nil && ctx.Err() == nil {
		if r.config.ExitOnForwardFailure {
			r.master.End()
			return ui.Exit(ui.ExitConnection, err)
		}
		r.service.UI.Warn(err)
	}
	if session != nil && ctx.Err() == nil {
		if err := session.Begin(); err != nil {
			return ui.Exit(ui.ExitConnection, err)
		}
	}
	return ui.Exit(0, nil)
}

// leaveBridge starts the bridge, and waits for it as a session does. The error says why gpg on
// the host is not served.
func (r *run) leaveBridge(ctx context.Context, session *sshmaster.Pending) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	launcher := background.Launcher{Dir: dir, Target: r.service.Target, Spec: r.service.Target.Spec, Over: r.master.Path()}
	if session != nil {
		launcher.Session = session.PID
	}
	ctx, cancel := context.WithTimeout(ctx, bridgePatience)
	defer cancel()
	if err := launcher.Start(ctx); err != nil {
		return err
	}
	watch, err := dir.Watch(ctx, launcher.Target.ID)
	if err != nil {
		return err
	}
	defer watch.Close()
	for {
		status, err := watch.Next()
		switch {
		case err != nil && ctx.Err() != nil:
			return &share.UnservedError{Host: r.service.Target.Name, Problem: &share.Problem{
				Text: "it takes long", Remedy: "see gpg-bridge status", At: time.Now(),
			}}
		case err != nil:
			return err
		case status.State == share.Up:
			return nil
		case status.State.Hindered() && status.Problem != nil:
			return &share.UnservedError{Host: r.service.Target.Name, Problem: status.Problem}
		}
	}
}
