package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"gpg-bridge/sshfwd"
)

// checkSession refuses what ssh refuses before it connects (ssh.c).
func (r *sshRun) checkSession() error {
	switch {
	case r.command != "" && r.config.RemoteCommand != "":
		return errors.New("cannot execute command-line and remote command: ssh_config has a RemoteCommand for this host")
	case r.isSubsystem() && r.remoteCommand() == "":
		return errors.New("you must specify a subsystem to invoke")
	}
	return nil
}

func (r *sshRun) isSubsystem() bool {
	return r.flags.session.subsystem || r.config.SessionType == "subsystem"
}

// remoteCommand is what runs on the host; empty is a login shell.
func (r *sshRun) remoteCommand() string {
	if r.command != "" {
		return r.command
	}
	return r.config.RemoteCommand
}

// session runs the command, or the login shell, and returns its status.
func (r *sshRun) session(ctx context.Context) error {
	request := sshfwd.SessionRequest{
		Command:   r.remoteCommand(),
		Subsystem: r.isSubsystem(),
		Env:       r.environment(os.Environ()),
		Stdin:     r.ui.stdin,
		NoStdin:   r.flags.session.noStdin,
		Stdout:    r.ui.stdout,
		Stderr:    r.ui.stderr,

		ForwardAgent: r.forwardAgent(),
	}
	status, err := r.runSession(ctx, &request)
	r.disconnected = errors.Is(err, sshfwd.ErrDisconnected)
	return &exitError{status, r.ending(ctx, request.PTY != nil, err)}
}

// runSession puts the terminal back on every way out, a panic among them.
func (r *sshRun) runSession(ctx context.Context, request *sshfwd.SessionRequest) (int, error) {
	defer r.attachTerminal(request)()
	return r.client.Session(ctx, *request)
}

// ending says what ssh says at the end of a session (clientloop.c), in its own
// words, and returns what is left to be told. ssh has no words for a status,
// nor for a signal that ended the remote command or us.
func (r *sshRun) ending(ctx context.Context, hadTTY bool, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	var exit *sshfwd.ExitError
	var lost *sshfwd.LostError
	switch {
	case errors.As(err, &lost) && errors.Is(err, sshfwd.ErrNoAnswer):
		r.tell("Timeout, server %s not responding.", r.config.Hostname)
		return nil
	case errors.As(err, &lost):
		r.tell("Connection to %s closed by remote host.", r.config.Hostname)
		err = nil
	case errors.As(err, &exit), errors.Is(err, sshfwd.ErrDisconnected), errors.Is(err, sshfwd.ErrNoExitStatus),
		errors.Is(err, syscall.EPIPE): // whoever closed our stdout knows
		err = nil
	}
	if hadTTY && r.isInfoShown() {
		r.tell("Connection to %s closed.", r.config.Hostname)
	}
	return err
}

// isInfoShown reports whether ssh would show messages of LogLevel INFO.
func (r *sshRun) isInfoShown() bool {
	switch level := strings.ToUpper(r.config.LogLevel); level {
	case "QUIET", "FATAL", "ERROR":
		return false
	}
	return !r.flags.quiet
}

// tell shows a line of ssh's own.
func (r *sshRun) tell(format string, args ...any) {
	r.show(fmt.Sprintf(format, args...) + "\r\n")
}

// show writes to the user's terminal between other messages.
func (r *sshRun) show(text string) {
	r.ui.mu.Lock()
	defer r.ui.mu.Unlock()
	_, _ = io.WriteString(r.ui.stderr, text)
}

// wantsTTY decides as ssh does (ssh.c): -T and -t first, then RequestTTY, then
// whether a shell was asked for. Without a terminal here only force counts;
// missing says that one was wanted.
func (r *sshRun) wantsTTY(haveTerminal bool, command string) (wanted, missing bool) {
	mode := r.config.RequestTTY
	if r.flags.tty != "" {
		mode = r.flags.tty
	}
	switch {
	case mode == "force":
		return true, false
	case mode == "no" || (mode != "yes" && command != ""):
		return false, false
	}
	haveTerminal = haveTerminal && !r.flags.session.noStdin
	return haveTerminal, !haveTerminal
}

// attachTerminal asks for a terminal on the host if one is wanted, and gives
// it every key from the moment that the shell runs. The function returned puts
// everything back.
func (r *sshRun) attachTerminal(request *sshfwd.SessionRequest) (restore func()) {
	in, _ := r.ui.stdin.(*os.File)
	out, _ := r.ui.stdout.(*os.File)
	terminal, ok := sshfwd.OpenTerminal(in, out)
	wanted, missing := r.wantsTTY(ok, request.Command)
	if missing && r.isInfoShown() {
		r.tell("Pseudo-terminal will not be allocated because stdin is not a terminal.")
	}
	if !wanted {
		return func() {}
	}
	raw := &rawMode{ui: r.ui, terminal: terminal}
	request.Escape = r.escape(raw)
	if !ok {
		request.PTY = &sshfwd.PTY{Term: r.config.TermName(os.Getenv("TERM"))}
		return func() {}
	}
	request.PTY = terminal.PTY(r.config.TermName(os.Getenv("TERM")))
	input := terminal.Input()
	request.Stdin = input
	sizes, stopSizes := terminal.Resizes()
	request.Resize = sizes
	request.Started = raw.enter
	stopContinue := sshfwd.OnContinue(raw.renew)
	return func() {
		_ = input.Close()
		raw.end()
		stopContinue()
		stopSizes()
	}
}

// escape is what escape sequences do, nil for none.
func (r *sshRun) escape(raw *rawMode) *sshfwd.Escape {
	char, ok := sshfwd.EscapeChar(r.config.EscapeChar)
	if !ok {
		return nil
	}
	escape := &sshfwd.Escape{Char: char, Show: r.show}
	if sshfwd.CanSuspend {
		escape.Suspend = raw.suspend
	}
	return escape
}

// environment returns the variables to send, of ours and of the configuration.
func (r *sshRun) environment(ours []string) []sshfwd.EnvVar { return r.config.Environment(ours) }
