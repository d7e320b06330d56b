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
	r.disconnected.Store(errors.Is(err, sshfwd.ErrDisconnected))
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
	if ctx.Err() != nil || errors.Is(err, errNoPTY) {
		return nil
	}
	var exit *sshfwd.ExitError
	var lost *sshfwd.LostError
	switch {
	case errors.As(err, &lost) && errors.Is(err, sshfwd.ErrNoAnswer):
		r.tell("Timeout, server %s not responding.", r.config.Hostname)
		return nil
	case errors.Is(err, sshfwd.ErrHeldTooMuch):
		return lost
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

// isErrorShown is the same for ERROR.
func (r *sshRun) isErrorShown() bool {
	switch level := strings.ToUpper(r.config.LogLevel); level {
	case "QUIET", "FATAL":
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

// requestTTY is RequestTTY of ssh_config, unless a flag says otherwise.
func (r *sshRun) requestTTY() string {
	if r.flags.tty != "" {
		return r.flags.tty
	}
	return r.config.RequestTTY
}

// wantsTTY decides as ssh does (ssh.c): -T and -t first, then RequestTTY, then
// whether a shell was asked for. Without a terminal here only force counts;
// missing says that one was wanted.
func (r *sshRun) wantsTTY(haveTerminal bool, command string) (wanted, missing bool) {
	mode := r.requestTTY()
	switch {
	case mode == "force":
		return true, false
	case mode == "no" || (mode != "yes" && command != ""):
		return false, false
	}
	haveTerminal = haveTerminal && !r.flags.session.noStdin
	return haveTerminal, !haveTerminal
}

// terminal returns the user's terminal, nil if stdin is none, and the one to ask
// the host for, nil if none is wanted; missing says that one would be.
func (r *sshRun) terminal() (here *sshfwd.Terminal, pty *sshfwd.PTY, missing bool) {
	in, _ := r.ui.stdin.(*os.File)
	out, _ := r.ui.stdout.(*os.File)
	here, ok := sshfwd.OpenTerminal(in, out)
	wanted, missing := r.wantsTTY(ok, r.remoteCommand())
	name := r.config.TermName(os.Getenv("TERM"))
	switch {
	case !wanted:
		return here, nil, missing
	case !ok:
		return nil, &sshfwd.PTY{Term: name}, false
	}
	return here, here.PTY(name), false
}

// askPTYAhead asks for the session's terminal while the host is prepared. It is
// for the moment after OpenAhead.
func (r *sshRun) askPTYAhead() {
	if _, pty, _ := r.terminal(); pty != nil {
		r.client.AskPTYAhead(pty)
	}
}

// attachTerminal asks for a terminal on the host if one is wanted, and gives
// it every key from the moment that the shell runs. The function returned puts
// everything back.
func (r *sshRun) attachTerminal(request *sshfwd.SessionRequest) (restore func()) {
	terminal, pty, missing := r.terminal()
	if missing && r.isInfoShown() {
		r.tell("Pseudo-terminal will not be allocated because stdin is not a terminal.")
	}
	if pty == nil {
		return func() {}
	}
	raw := &rawMode{ui: r.ui, terminal: terminal}
	request.Escape = r.escape(raw)
	request.PTY, request.PTYRefused = pty, r.ptyRefused
	if terminal == nil {
		return func() {}
	}
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

// errNoPTY ends a session whose terminal was refused.
var errNoPTY = errors.New("the server refused a terminal")

// ptyRefused says what ssh says, and goes on as ssh does unless the terminal
// was asked for by name (client_status_confirm in clientloop.c). The terminal
// here stays as the user had it.
func (r *sshRun) ptyRefused() error {
	if r.isErrorShown() {
		r.tell("PTY allocation request failed on channel 0")
	}
	if r.requestTTY() == "auto" {
		return nil
	}
	return errNoPTY
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
