package sshsession

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/terminal"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/wire"
)

// checkSession returns an error for what ssh refuses before it connects (ssh.c).
func (r *run) checkSession() error {
	switch {
	case r.request.Command != "" && r.config.RemoteCommand != "":
		return errors.New("cannot execute command-line and remote command: ssh_config has a RemoteCommand for this host")
	case r.isSubsystem() && r.remoteCommand() == "":
		return errors.New("you must specify a subsystem to invoke")
	}
	_, err := r.config.LocalCommandLine()
	return err
}

func (r *run) isSubsystem() bool { return r.config.SessionType == "subsystem" }

// wantsShell reports whether the user expects the account to have a shell. Whoever calls us for
// git or to copy files need not: such accounts often have none.
func (r *run) wantsShell() bool {
	return r.onlyForward() || !r.isSubsystem() && !isServer(r.remoteCommand())
}

// isServer reports whether a command is one that git or a program that copies files runs on a host.
func isServer(command string) bool {
	program, _, _ := strings.Cut(command, " ")
	return strings.HasPrefix(program, "git-") || slices.Contains([]string{"scp", "rsync", "svnserve", "hg", "borg"}, program)
}

// remoteCommand is what runs on the host; empty is a login shell.
func (r *run) remoteCommand() string {
	if r.request.Command != "" {
		return r.request.Command
	}
	return r.config.RemoteCommand
}

// session runs the command, or the login shell, and returns its status.
func (r *run) session(ctx context.Context, b *sessionBridge) error {
	if r.master != nil {
		return r.sessionOverSSH(ctx, b.isLate())
	}
	request := sshfwd.SessionRequest{
		Command:   r.remoteCommand(),
		Subsystem: r.isSubsystem(),
		Env:       r.config.Environment(realssh.Without(os.Environ())),
		Stdin:     r.service.UI.Stdin,
		NoStdin:   r.config.StdinNull,
		Stdout:    b.tellBeforeOutput(r.guard.Writer(r.service.UI.Stdout)),
		Stderr:    b.tellBeforeOutput(r.guard.Writer(r.service.UI.Stderr)),

		ForwardAgent: r.forwardAgent(),
	}
	status, err := r.onTerminal(ctx, &request)
	r.disconnected.Store(errors.Is(err, sshfwd.ErrDisconnected))
	r.askHostKeys(ctx, request.PTY != nil)
	return ui.Exit(status, r.ending(ctx, request.PTY != nil, err))
}

// askHostKeys is UpdateHostKeys ask: the question comes when the terminal is the user's
// again. As ssh, it asks only whoever has had a shell there (ssh.c).
func (r *run) askHostKeys(ctx context.Context, hadTTY bool) {
	if !hadTTY || ctx.Err() != nil || r.remoteCommand() != "" || r.config.LogLevel < usertext.Info {
		return
	}
	if err := r.conn.Client.AskHostKeys(ctx, ui.NewPrompter(r.service.UI)); err != nil {
		r.service.UI.Warn(fmt.Errorf("the host's keys were not updated: %w", err))
	}
}

// onTerminal puts the terminal back on every way out, a panic among them.
func (r *run) onTerminal(ctx context.Context, request *sshfwd.SessionRequest) (int, error) {
	defer r.attachTerminal(request)()
	return r.conn.Client.Session(ctx, *request)
}

// ending tells the user in ssh's words what ssh tells at the end of a session (clientloop.c),
// and returns the error that is left to be told. ssh says nothing about a status, or a signal
// that ended the remote command or us.
func (r *run) ending(ctx context.Context, hadTTY bool, err error) error {
	if ctx.Err() != nil || errors.Is(err, errNoPTY) {
		return nil
	}
	var exit *link.ExitError
	var lost *link.LostError
	switch {
	case errors.As(err, &lost) && errors.Is(err, sshfwd.ErrNoAnswer):
		r.say(usertext.Info, "Timeout, server %s not responding.", r.config.Hostname)
		return nil
	case errors.Is(err, wire.ErrHeldTooMuch):
		return lost
	case errors.As(err, &lost):
		r.tell(usertext.Quiet, "Connection to %s closed by remote host.", r.config.Hostname)
		err = nil
	case errors.As(err, &exit), errors.Is(err, sshfwd.ErrDisconnected), errors.Is(err, link.ErrNoExitStatus),
		errors.Is(err, syscall.EPIPE): // whoever closed our stdout knows
		err = nil
	}
	if hadTTY {
		r.tell(usertext.Info, "Connection to %s closed.", r.config.Hostname)
	}
	return err
}

// say is tell for what ssh logs, and -E sends elsewhere.
func (r *run) say(level usertext.Level, format string, args ...any) {
	r.service.UI.Message(level, fmt.Sprintf(format, args...)+"\r\n")
}

// tell shows a line of ssh's own, from ssh's level for it on.
func (r *run) tell(level usertext.Level, format string, args ...any) {
	r.service.UI.ShowAt(level, fmt.Sprintf(format, args...)+"\r\n")
}

// wantsTTY decides as ssh does (ssh.c): by RequestTTY, which -T and -t set, then by whether a
// shell was requested. Without a terminal here only force counts; missing says that a terminal
// was wanted.
func (r *run) wantsTTY(haveTerminal bool, command string) (wanted, missing bool) {
	mode := r.config.RequestTTY
	switch {
	case mode == "force":
		return true, false
	case mode == "no" || (mode != "yes" && command != ""):
		return false, false
	}
	haveTerminal = haveTerminal && !r.config.StdinNull
	return haveTerminal, !haveTerminal
}

// terminal returns the user's terminal, nil if stdin is none, and the one to request from the
// host, nil if none is wanted. missing says that one was wanted, but there is none here.
func (r *run) terminal() (here *terminal.Terminal, pty *terminal.PTY, missing bool) {
	in, _ := r.service.UI.Stdin.(*os.File)
	out, _ := r.service.UI.Stdout.(*os.File)
	here, ok := terminal.Open(in, out)
	wanted, missing := r.wantsTTY(ok, r.remoteCommand())
	name := r.config.TermName(os.Getenv("TERM"))
	switch {
	case !wanted:
		return here, nil, missing
	case !ok:
		return nil, &terminal.PTY{Term: name}, false
	}
	return here, here.PTY(name), false
}

// openAhead opens the session's channel and requests its terminal while the host is prepared.
func (r *run) openAhead() {
	if r.master != nil {
		return
	}
	r.conn.Client.OpenAhead()
	if _, pty, _ := r.terminal(); pty != nil {
		r.conn.Client.AskPTYAhead(pty)
	}
}

// attachTerminal requests a terminal on the host if one is wanted, and passes it every key as
// soon as the shell runs. The returned function restores the terminal here.
func (r *run) attachTerminal(request *sshfwd.SessionRequest) (restore func()) {
	tty, pty, missing := r.terminal()
	if missing {
		r.say(usertext.Info, "Pseudo-terminal will not be allocated because stdin is not a terminal.")
	}
	if pty == nil {
		return r.attachLines(request, tty)
	}
	raw := &rawMode{ui: r.service.UI, terminal: tty}
	request.Escape = r.escape(raw)
	request.PTY, request.PTYRefused = pty, r.ptyRefused
	if tty == nil {
		return func() {}
	}
	input := tty.Input(r.guard.IsFree)
	request.Stdin = input
	sizes, stopSizes := tty.Resizes()
	painter := newRepainter(tty, sizes)
	request.Resize = painter.sizes
	request.Started = raw.enter
	r.guard.LendFor(lentTerminal{raw, painter})
	stopContinue := terminal.OnContinue(raw.renew)
	return func() {
		_ = input.Close()
		r.guard.Await() // until then the pinentry has the modes
		r.guard.LendFor(nil)
		raw.end()
		stopContinue()
		painter.stop()
		stopSizes()
	}
}

// attachLines is for a session without a terminal on the host, which reads the terminal here
// line by line.
func (r *run) attachLines(request *sshfwd.SessionRequest, tty *terminal.Terminal) (restore func()) {
	if r.guard == nil || tty == nil {
		return func() {}
	}
	input := tty.Input(r.guard.IsFree)
	request.Stdin = input
	return func() { _ = input.Close() }
}

// errNoPTY ends a session whose terminal was refused.
var errNoPTY = errors.New("the server refused a terminal")

// ptyRefused says what ssh says, and goes on as ssh does, unless the user asked for a terminal
// (client_status_confirm in clientloop.c). The terminal here stays as the user had it.
func (r *run) ptyRefused() error {
	r.say(usertext.Error, "PTY allocation request failed on channel 0")
	if r.config.RequestTTY == "auto" {
		return nil
	}
	return errNoPTY
}

// escape returns what escape sequences do, nil if there are none.
func (r *run) escape(raw *rawMode) *sshfwd.Escape {
	char, ok := sshfwd.EscapeChar(r.config.EscapeChar)
	if !ok {
		return nil
	}
	escape := &sshfwd.Escape{Char: char, Show: r.service.UI.Show, Verbosity: r.changeLevel, CommandLine: r.config.EnableEscapeCommandline}
	if terminal.CanSuspend {
		escape.Suspend = raw.suspend
	}
	return escape
}
