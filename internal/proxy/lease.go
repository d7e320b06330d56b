package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// endGrace is what a leaseholder gets to end. ssh does not wait for it.
const endGrace = 50 * time.Millisecond

// A leaseholder holds a lease of the target's bridge while ssh is connected, and starts the
// bridge if there is none. It has one goroutine, from start to end; if its work fails or
// hangs, the connection is not affected.
type leaseholder struct {
	proxy    *Proxy
	reporter *reporter
	cancel   context.CancelFunc
	done     chan struct{} // nil before start
}

// newLeaseholder: sent returns how much has gone to the host so far; it is nil if that is
// not known.
func (p *Proxy) newLeaseholder(sent func() int64) *leaseholder {
	return &leaseholder{proxy: p, reporter: newReporter(p.ui, sent)}
}

// start begins, unless this proxy is to do without a bridge. The end of ctx does not end
// it, not even the SIGHUP with which ssh ends its proxy: end has to ask the bridge
// something first.
func (l *leaseholder) start(ctx context.Context) {
	if isOff() {
		return
	}
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		// A panic here would end the user's connection, which does not need any of
		// this. There is no state that others could then see broken.
		defer func() {
			if r := recover(); r != nil {
				l.reporter.report(&share.Problem{Text: fmt.Sprintf("internal error: %v", r)})
			}
		}()
		l.run(ctx)
	}()
}

// end gives the lease back. What does not end within endGrace ends with the process.
func (l *leaseholder) end() {
	if l.done == nil {
		return
	}
	l.reporter.askBridge()
	l.reporter.close()
	l.cancel()
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
	}
}

// run holds a lease, and takes another when it ends, until ctx ends or the user has taken
// the bridge down.
func (l *leaseholder) run(ctx context.Context) {
	launcher, err := l.proxy.launcher(ctx)
	if err != nil {
		l.reportError(ctx, err)
		return
	}
	defer launcher.Dir.Close()
	l.reporter.setBridge(launcher)
	backoff := retry.Reconnecting()
	for ctx.Err() == nil {
		began := time.Now()
		err := l.hold(ctx, launcher)
		if errors.Is(err, share.ErrTakenDown) {
			return
		}
		if !errors.Is(err, share.ErrNobody) {
			l.reportError(ctx, err)
		}
		backoff.HeldSince(began)
		_ = retry.Sleep(ctx, backoff.Next(), nil)
	}
}

// hold takes a lease and returns why it ended.
func (l *leaseholder) hold(ctx context.Context, launcher *background.Launcher) error {
	lease, err := launcher.Ensure(ctx)
	if err != nil {
		return err
	}
	defer lease.Close()
	defer l.reporter.setAnswering(false)
	for {
		status, err := lease.Next()
		l.reporter.setAnswering(err == nil)
		switch {
		case err != nil:
			return err
		case status.Problem.IsRefusedPrompt():
			l.reporter.reportRefused(status.Problem)
		case status.Problem != nil && status.State.Hindered():
			l.reporter.report(status.Problem)
		case status.State == share.Up:
			l.reporter.report(nil)
		}
	}
}

func (l *leaseholder) reportError(ctx context.Context, err error) {
	if ctx.Err() == nil {
		l.reporter.report(&share.Problem{Text: err.Error(), Remedy: usertext.Hint(err)})
	}
}

// launcher finds out which bridge it is, and returns what starts it. That bridge reaches
// the host as this proxy does, whatever ssh_config says, since that says gpg-bridge proxy.
func (p *Proxy) launcher(ctx context.Context) (*background.Launcher, error) {
	spec := p.line.Spec
	spec.Host, spec.Port = cmp.Or(spec.Host, p.host), p.port
	spec.Options = []string{"HostName=" + escapeTokens(p.host)}
	switch {
	case spec.Via != "":
		spec.Options = append(spec.Options, "ProxyCommand="+escapeTokens(spec.Via))
		spec.Via = "" // it is in the options
	case spec.JumpHosts == "":
		spec.Options = append(spec.Options, "ProxyCommand=none")
	}
	home := target.AskHome(ctx)
	defer home.Stop()
	options := spec.SSH()
	options.BatchMode = true
	resolved, err := config.Resolve(ctx, options)
	if err != nil {
		return nil, err
	}
	dir, err := share.Open()
	if err != nil {
		return nil, err
	}
	return &background.Launcher{Dir: dir, Target: target.Of(resolved, spec, home.Name()), Spec: spec}, nil
}

// escapeTokens makes ssh_config take value as it is: ssh has replaced its tokens
// (ssh_config(5), TOKENS) already.
func escapeTokens(value string) string { return strings.ReplaceAll(value, "%", "%%") }
