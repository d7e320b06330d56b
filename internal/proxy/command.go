package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/ui"
)

// commandGrace is what the command gets to end after it was asked to.
const commandGrace = time.Second

// runCommand is the proxy that lets a command connect ssh to the host, with our standard
// input and output: --via's, or ssh -W for --jump. What is left for us is the lease of the
// bridge, and to pass signals on.
func (p *Proxy) runCommand(ctx context.Context, in, out *os.File) error {
	cmd, err := p.command(ctx, in, out)
	if err != nil {
		return ui.Exit(ui.ExitConnection, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, p.ui.Stderr
	if err := cmd.Start(); err != nil {
		return ui.Exit(ui.ExitConnection, err)
	}
	_, _ = in.Close(), out.Close() // ssh must see it when the command closes them
	bridge := p.newLeaseholder(nil)
	bridge.start(ctx)
	err = awaitCommand(ctx, cmd)
	bridge.end()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return ui.Exit(exit.ExitCode(), nil)
	case err != nil:
		return ui.Exit(ui.ExitConnection, nil)
	}
	return nil
}

func (p *Proxy) command(ctx context.Context, in, out *os.File) (*exec.Cmd, error) {
	if p.line.JumpHosts == "" {
		return proc.Shell(p.line.Via)
	}
	if proc.IsSocketPair(in, out) {
		return nil, errFdpassJump
	}
	return realssh.Command(context.WithoutCancel(ctx), p.jumpArgs()...) // awaitCommand ends it
}

// awaitCommand waits until the command has ended, and asks it to when ctx ends.
func awaitCommand(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		proc.HangUp(cmd.Process)
	}
	timer := time.NewTimer(commandGrace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		_ = cmd.Process.Kill()
		return <-ended
	}
}

// jumpArgs returns the arguments of the ssh that makes --jump's way, as ssh itself makes
// that of its ProxyJump (ssh.c): it goes to the last jump host, through the others.
func (p *Proxy) jumpArgs() []string {
	others, last := "", p.line.JumpHosts
	if i := strings.LastIndexByte(last, ','); i >= 0 {
		others, last = last[:i], last[i+1:]
	}
	var args []string
	if p.line.ConfigFile != "" {
		args = append(args, "-F", p.line.ConfigFile)
	}
	if others != "" {
		args = append(args, "-J", others)
	}
	host, port := splitJump(last)
	if port != "" {
		args = append(args, "-p", port)
	}
	to := "[" + p.host + "]:" + strconv.Itoa(p.port) // as ssh writes it
	return append(args, "-W", to, "--", host)
}

// splitJump splits [user@]host[:port] into what ssh takes as a destination and a port. It
// leaves ssh://… as it is, which ssh takes, too.
func splitJump(spec string) (destination, port string) {
	if strings.HasPrefix(spec, "ssh://") {
		return spec, ""
	}
	user, host := "", spec
	if i := strings.LastIndexByte(spec, '@'); i >= 0 {
		user, host = spec[:i+1], spec[i+1:]
	}
	if name, number, err := net.SplitHostPort(host); err == nil {
		return user + name, number
	}
	return user + strings.Trim(host, "[]"), ""
}

// errFdpassJump: the connection through ssh -W is not a socket, which could be handed over.
var errFdpassJump = &fdpassError{}

type fdpassError struct{}

func (*fdpassError) Error() string { return "ProxyUseFdpass does not go with --jump" }

// Hint says what to do.
func (*fdpassError) Hint() string { return "set ProxyUseFdpass no for this host in ssh_config" }
