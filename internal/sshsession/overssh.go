package sshsession

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"

	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/signals"
	"gpg-bridge/internal/sshmaster"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd"
)

// chooseSSH decides whether the user's own ssh connects, and has the session. On Windows, where
// ssh shares no connection, the error is what cannot be done.
func (r *run) chooseSSH(ctx context.Context) error {
	reasons := sshmaster.Why(ctx, r.config)
	if len(reasons) == 0 {
		return nil
	}
	var texts, vital []string
	for _, reason := range reasons {
		texts = append(texts, reason.Text)
		if reason.Vital {
			vital = append(vital, reason.Text)
		}
	}
	if runtime.GOOS == "windows" {
		if len(vital) > 0 {
			return &needsSSHError{strings.Join(vital, ", ")}
		}
		return nil
	}
	r.overSSH, r.service.Unguarded = true, true
	r.service.Log.Info("the user's ssh connects", "for", strings.Join(texts, ", "))
	return nil
}

// A needsSSHError says that only ssh can do what is asked for, and cannot share its connection
// with a bridge.
type needsSSHError struct{ what string }

func (e *needsSSHError) Error() string {
	return e.what + ": only ssh itself can do this, and on Windows it shares no connection with a bridge"
}

// Hint says what to do.
func (e *needsSSHError) Hint() string {
	return "leave it out for this host, for example in a Host block of its own in ssh_config, or use ssh without gpg there"
}

// connectSSH has the user's ssh log in.
func (r *run) connectSSH(ctx context.Context) error {
	path, environ, err := realssh.Find(ctx)
	if err != nil {
		return notBegun(ctx, usertext.WithHint("only ssh can do what is asked for, and there is none", "install OpenSSH's client"))
	}
	options := r.sshOptions(path, environ)
	master, err := sshmaster.Connect(ctx, options)
	switch {
	case err == nil:
	case ctx.Err() == nil && !isSSHs(err):
		r.service.UI.Warn(&noSharedError{err})
		return ofSSH(sshmaster.Plain(ctx, options))
	default:
		return ofSSH(err)
	}
	r.conn, r.master = serve.Connection{Link: master}, master
	r.service.Status.SharedBy(master.SharedBy())
	return nil
}

// onlySSHHas returns the algorithms for want of which a connection failed before the log-in, and
// that the user's ssh has; "" if it did not, or ssh shares no connection here.
func onlySSHHas(err error) string {
	none, ok := errors.AsType[*sshfwd.AlgorithmError](err)
	if !ok || runtime.GOOS == "windows" {
		return ""
	}
	return strings.Join(none.Lacking, ",")
}

// connectSSHInstead has the user's ssh log in to a host that takes no algorithm of ours.
func (r *run) connectSSHInstead(ctx context.Context, algorithms string) error {
	r.service.Log.Info("the user's ssh connects", "for", algorithms)
	r.overSSH, r.service.Unguarded = true, true
	r.guard.End() // that ssh reads the terminal
	r.guard = nil
	return r.connectSSH(ctx)
}

func (r *run) sshOptions(path string, environ []string) sshmaster.Options {
	t := r.service.Target
	user := r.service.UI
	return sshmaster.Options{
		SSH: path, Env: environ, SessionEnv: realssh.Without(os.Environ()), Line: r.line, Config: r.config, Name: t.ID, Log: r.service.Log,
		Route: sshmaster.Route{Replace: t.Unproxied, ProxyCommand: r.config.ProxyCommand, ProxyJump: r.config.ProxyJump},
		Stays: r.forks() && r.onlyForward(),
		Stdio: sshmaster.Stdio{In: user.Stdin, Out: user.Stdout, Err: user.Stderr},
	}
}

// sessionOverSSH runs the session.
func (r *run) sessionOverSSH(ctx context.Context, late bool) error {
	if _, pty, _ := r.terminal(); pty != nil { // that ssh sets raw mode
		r.service.UI.SetRaw(true)
		defer r.service.UI.SetRaw(false)
	}
	// If the bridge is late, its preparation may have the only session that the host grants.
	err := r.master.Session(ctx, late && !isClosed(r.master.Ended()))
	ended, ok := errors.AsType[*sshmaster.ExitError](err)
	if ok && ended.Status == ui.ExitConnection && r.master.IsLost() {
		// The ssh that is logged in has no terminal to say it on.
		r.tell(usertext.Error, "Connection to %s closed by remote host.", r.config.Hostname)
	}
	if ok { // a signal ends a session with 255, too
		return ui.Exit(ended.Status, nil)
	}
	return ofSSH(err)
}

// isSSHs reports whether an ssh of the user's has failed, and said why.
func isSSHs(err error) bool {
	_, ok := errors.AsType[*sshmaster.ExitError](err)
	return ok
}

// A noSharedError says that the user's ssh connects without a bridge.
type noSharedError struct{ why error }

func (e *noSharedError) Error() string { return "no bridge over your ssh: " + e.why.Error() }
func (e *noSharedError) Unwrap() error { return e.why }

// ofSSH returns an error of the user's ssh as ours: it has said what there is to say.
func ofSSH(err error) error {
	ended, ok := errors.AsType[*sshmaster.ExitError](err)
	switch {
	case !ok && err != nil:
		return ui.Exit(ui.ExitConnection, err)
	case ok && ended.Signal != 0:
		return ui.Exit(ui.ExitConnection, &signals.DiedError{Signal: ended.Signal})
	case ok:
		return ui.Exit(ended.Status, nil)
	}
	return ui.Exit(0, nil)
}
