package sshsession

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/promptguard"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/signals"
	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/sshmaster"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// A run is one run of gpg-bridge ssh.
type run struct {
	request Request
	config  *config.Config
	service *serve.Service

	line    sshflags.Line      // of the user's ssh
	overSSH bool               // the user's own ssh connects
	master  *sshmaster.Master  // that ssh; nil if it does not
	conn    serve.Connection   // set by connect
	guard   *promptguard.Guard // of the terminal, nil if there is none
	place   *waitingPlace      // with -N; else nil

	disconnected atomic.Bool // the user left with the escape ~.
	takenDown    atomic.Bool // the user took the bridge down: this process does not bring it up again
}

// Run runs the session, or forwards alone, until it ends. The error is an *ui.ExitError with
// the status of what ran on the host, or 255 where the connection failed.
func Run(ctx context.Context, request Request, user *ui.UI) error {
	home := target.AskHome(ctx)
	defer home.Stop() // which may wait for what gpgconf has left behind: no session does
	r, err := resolve(ctx, request, user, home)
	if refused, ok := errors.AsType[*config.Error](err); ok && refused.Said != nil && ctx.Err() == nil {
		for _, line := range refused.Said {
			user.Show(line + "\n")
		}
		return ui.Exit(ui.ExitConnection, nil)
	}
	if err != nil {
		return notBegun(ctx, err)
	}
	switch {
	case r.forks():
		return r.fork(ctx)
	case r.onlyForward():
		return r.keepForwarding(ctx)
	}
	return r.runSession(ctx)
}

// resolve finds out what ssh_config says of the host, and which target that is.
func resolve(ctx context.Context, request Request, user *ui.UI, home *target.Home) (*run, error) {
	t, err := target.Resolve(ctx, request.Spec, request.SSH(), home)
	if err != nil {
		return nil, err
	}
	user.SetLevel(t.Config.LogLevel)
	for _, warning := range t.Config.Warnings { // in ssh's words, and as loud as ssh
		user.Message(usertext.Fatal, warning+"\n")
	}
	r := &run{request: request, config: t.Config}
	if r.line, err = sshflags.Parse(request.Args, nil); err != nil {
		return nil, err
	}
	r.service = serve.New(serve.Options{
		Target: t, UI: user, Kind: share.Session,
		Session: !r.onlyForward(), LoginShell: r.onlyForward() || r.remoteCommand() == "",
	})
	if err := r.checkSession(); err != nil {
		return nil, err
	}
	return r, r.chooseSSH(ctx)
}

// notBegun returns the error of a run that failed with err before it had a connection, or how
// the run ends if a signal was the reason.
func notBegun(ctx context.Context, err error) error {
	proc.AwaitSignal(ctx, err)
	if signal, end := signals.Ending(ctx, signals.Beginning); signal != nil {
		return end
	}
	return ui.Exit(ui.ExitConnection, err)
}

// killed returns err, or how a run with a connection ends if a signal has ended it. What the
// remote command ended with before that counts.
func (r *run) killed(ctx context.Context, err error) error {
	phase := signals.Session
	if r.onlyForward() {
		phase = signals.Forwarding
	}
	signal, end := signals.Ending(ctx, phase)
	exit, exited := errors.AsType[*ui.ExitError](err)
	_, died := errors.AsType[*signals.DiedError](err)
	if signal == nil || died || exited && exit.Code != ui.ExitConnection {
		return err
	}
	if number, ok := signal.(syscall.Signal); ok && end != nil {
		r.say(usertext.Verbose, "Killed by signal %d.", number)
	}
	return end
}

// runSession runs the session and a bridge beside it. A failure on GPG's side is a warning,
// unless ssh_config has the session fail with its forwards.
func (r *run) runSession(ctx context.Context) error {
	local, check, end := r.begin(ctx)
	defer end()
	if err := r.connect(ctx); err != nil {
		return err
	}
	defer r.disconnect(ctx)
	r.openAhead() // before anything else is asked of the host
	beside := r.bringUp(ctx, local, check)
	defer beside.takeDown(ctx)
	return r.killed(ctx, r.runBeside(ctx, beside))
}

// runBeside runs the session when its bridge is up, or late.
func (r *run) runBeside(ctx context.Context, beside *sessionBridge) error {
	if err := r.setUp(ctx, beside); err != nil {
		return err
	}
	err := r.session(ctx, beside)
	if ctx.Err() == nil && !r.disconnected.Load() {
		beside.tellLate()
	}
	return err
}

// setUp waits for the bridge, opens the user's forwards and runs LocalCommand, which may use
// them. If there are none, it does not wait for the bridge, nor the bridge for it.
func (r *run) setUp(ctx context.Context, beside *sessionBridge) error {
	if !r.hasForwards() {
		if err := r.runLocalCommand(ctx); err != nil {
			return err
		}
	}
	if err := beside.await(ctx); err != nil {
		return err
	}
	beside.warnOnce(ctx)
	if err := r.openForwards(ctx, beside.path()); err != nil || !r.hasForwards() {
		return err
	}
	return r.runLocalCommand(ctx)
}

// begin is the Service's, and keeps the guard for the session.
func (r *run) begin(ctx context.Context) (local *bridge.Local, check *serve.LocalCheck, end func()) {
	local, check, r.guard, end = r.service.Begin(ctx)
	return local, check, end
}

// connect logs in.
func (r *run) connect(ctx context.Context) error {
	if r.overSSH {
		return r.connectSSH(ctx)
	}
	connection, err := r.service.Dial(ctx)
	if foreign := onlySSHHas(err); foreign != "" {
		return r.connectSSHInstead(ctx, foreign)
	}
	if err != nil {
		return notBegun(ctx, err)
	}
	r.conn = connection
	return nil
}

// disconnect ends the connection.
func (r *run) disconnect(ctx context.Context) {
	if r.master != nil && ctx.Err() != nil {
		r.master.Abandon()
	}
	_ = r.conn.Close()
}

// onlyForward reports whether no session is wanted, by -N or SessionType none.
func (r *run) onlyForward() bool { return r.config.SessionType == "none" }

// bridgeIsAll reports whether there is no point in going on without a bridge.
func (r *run) bridgeIsAll() bool {
	return r.isOnlyBridge() || r.config.ExitOnForwardFailure
}

// isOnlyBridge reports whether this process does nothing but the bridge.
func (r *run) isOnlyBridge() bool { return r.onlyForward() && !r.hasForwards() }

// hasForwards reports whether the connection carries forwards of the user's own.
func (r *run) hasForwards() bool { return !r.config.Forwards.IsEmpty() }

// mayOverlap reports whether the session may start before the host has answered the request to
// forward: not if that answer decides what comes next.
func (r *run) mayOverlap() bool {
	return !r.bridgeIsAll() && len(r.config.Forwards.Remote) == 0 && r.master == nil
}
