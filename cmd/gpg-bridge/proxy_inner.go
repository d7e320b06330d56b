package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"gpg-bridge/internal/pump"
)

// innerGrace is what the inner proxy gets to end after it was asked to.
const innerGrace = time.Second

// runInner lets another program be the pump, with our standard streams: ssh
// with -W, or --via's command. Our part is the bridge, and to pass on the end.
func (p *proxyRun) runInner(ctx context.Context, in, out *os.File) error {
	var cmd *exec.Cmd
	var err error
	if p.flags.jump != "" {
		if pump.IsSocketPair(in, out) {
			return &exitError{exitConnection, errFdpassJump}
		}
		cmd, err = exec.Command("ssh", p.jumpArgs()...), nil
	} else {
		cmd, err = shellCommand(p.flags.via)
	}
	if err != nil {
		return &exitError{exitConnection, err}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, p.ui.stderr
	if err := cmd.Start(); err != nil {
		return &exitError{exitConnection, err}
	}
	_, _ = in.Close(), out.Close() // they are the inner proxy's now, and so are their ends
	beside := p.newCompanion(nil)
	beside.start(ctx)
	err = awaitInner(ctx, cmd)
	beside.end()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &exitError{exit.ExitCode(), nil}
	case err != nil:
		return &exitError{exitConnection, nil}
	}
	return nil
}

// awaitInner waits for the inner proxy's end, which it asks for when ctx ends.
func awaitInner(ctx context.Context, cmd *exec.Cmd) error {
	stop := context.AfterFunc(ctx, func() { hangUp(cmd.Process) })
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(innerGrace)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		_ = cmd.Process.Kill()
		return <-ended
	}
}

// jumpArgs make ssh's own ProxyJump (ssh.c): the last host is next to the
// target, and reached through the others.
func (p *proxyRun) jumpArgs() []string {
	others, last := "", p.flags.jump
	if i := strings.LastIndexByte(last, ','); i >= 0 {
		others, last = last[:i], last[i+1:]
	}
	var args []string
	if p.flags.config != "" {
		args = append(args, "-F", p.flags.config)
	}
	if others != "" {
		args = append(args, "-J", others)
	}
	host, port := splitJump(last)
	if port != "" {
		args = append(args, "-p", port)
	}
	to := net.JoinHostPort(p.host, strconv.Itoa(p.port))
	if !strings.Contains(p.host, ":") {
		to = "[" + p.host + "]:" + strconv.Itoa(p.port) // as ssh writes it
	}
	return append(args, "-W", to, "--", host)
}

// splitJump takes the port off [user@]host[:port]; ssh:// is a destination as
// it is.
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

// errFdpassJump: what ssh -W has is no socket to hand over.
var errFdpassJump = &fdpassError{}

type fdpassError struct{}

func (*fdpassError) Error() string { return "ProxyUseFdpass does not go with --jump" }

// Hint says what to do.
func (*fdpassError) Hint() string { return "set ProxyUseFdpass no for this host in ssh_config" }
