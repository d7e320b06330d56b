package main

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"gpg-bridge/sshfwd"
)

// session runs the command, or the login shell, and returns its status.
func (r *sshRun) session(ctx context.Context) error {
	request := sshfwd.SessionRequest{
		Command: r.command,
		Env:     r.environment(os.Environ()),
		Stdin:   r.ui.stdin,
		Stdout:  r.ui.stdout,
		Stderr:  r.ui.stderr,
	}
	if request.Command == "" {
		request.Command = r.config.RemoteCommand
	}
	restore := r.attachTerminal(&request)
	status, err := r.client.Session(ctx, request)
	restore()
	return &exitError{status, r.sessionError(ctx, err)}
}

// sessionError is what the user has to be told of the end of a session: ssh
// says nothing of a status or of a signal that ended the remote command, nor
// does a signal that ended us need words.
func (r *sshRun) sessionError(ctx context.Context, err error) error {
	var exit *sshfwd.ExitError
	if err == nil || ctx.Err() != nil || errors.As(err, &exit) {
		return nil
	}
	return err
}

// wantsTTY decides as ssh does (ssh.c): -T and -t first, then RequestTTY, then
// whether a shell was asked for; without a terminal here only force counts.
func (r *sshRun) wantsTTY(haveTerminal bool, command string) bool {
	mode := r.config.RequestTTY
	switch {
	case r.flags.noTTY:
		mode = "no"
	case r.flags.tty > 1:
		mode = "force"
	case r.flags.tty == 1:
		mode = "yes"
	}
	switch mode {
	case "no":
		return false
	case "force":
		return true
	case "yes":
		return haveTerminal
	}
	return haveTerminal && command == ""
}

// attachTerminal asks for a terminal on the host if one is wanted, and gives
// it every key from the moment that the shell runs. The function returned puts
// everything back.
func (r *sshRun) attachTerminal(request *sshfwd.SessionRequest) (restore func()) {
	in, _ := r.ui.stdin.(*os.File)
	out, _ := r.ui.stdout.(*os.File)
	terminal, ok := sshfwd.OpenTerminal(in, out)
	if !r.wantsTTY(ok, request.Command) {
		return func() {}
	}
	if !ok {
		request.PTY = &sshfwd.PTY{Term: os.Getenv("TERM")}
		return func() {}
	}
	request.PTY = terminal.PTY(os.Getenv("TERM"))
	request.Stdin = terminal.Input()
	sizes, stopSizes := terminal.Resizes()
	request.Resize = sizes
	cooked := func() error { return nil }
	request.Started = func() {
		if undo, err := terminal.MakeRaw(); err == nil {
			r.ui.setRaw(true)
			cooked = undo
		}
	}
	return func() {
		stopSizes()
		_ = cooked()
		r.ui.setRaw(false)
	}
}

// environment returns the variables that ssh would send: SetEnv's, and those
// of ours whose names match SendEnv.
func (r *sshRun) environment(ours []string) []sshfwd.EnvVar {
	var vars []sshfwd.EnvVar
	for _, assignment := range r.config.SetEnv {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			vars = append(vars, sshfwd.EnvVar{Name: name, Value: value})
		}
	}
	for _, assignment := range ours {
		name, value, _ := strings.Cut(assignment, "=")
		if r.sends(name) {
			vars = append(vars, sshfwd.EnvVar{Name: name, Value: value})
		}
	}
	return vars
}

// sends reports whether a variable matches SendEnv, whose patterns know * and ?.
func (r *sshRun) sends(name string) bool {
	for _, pattern := range r.config.SendEnv {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
