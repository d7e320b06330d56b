package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

// A companion holds a lease of the target's bridge while ssh is connected, and
// sees to it that there is one. It has one goroutine, from start to end; that
// its work fails, or hangs, is not noticed by the pump.
type companion struct {
	proxy   *proxyRun
	notices *notices
	cancel  context.CancelFunc
	done    chan struct{} // nil before start
}

// newCompanion: sent is how much has gone to the host so far, nil if that is not
// known.
func (p *proxyRun) newCompanion(sent func() int64) *companion {
	return &companion{proxy: p, notices: newNotices(p.ui, sent)}
}

// start begins, unless this proxy is the way of a bridge to its host.
func (c *companion) start(ctx context.Context) {
	if os.Getenv(proxyVariable) == proxyOff {
		return
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		// A panic here would end the user's connection, which does not need
		// any of this. There is no state that others could then see broken.
		defer func() {
			if r := recover(); r != nil {
				c.notices.put(&share.Problem{Text: fmt.Sprintf("internal error: %v", r)})
			}
		}()
		c.run(ctx)
	}()
}

// end gives the lease back. What cannot end within endGrace ends with the
// process.
func (c *companion) end() {
	if c.done == nil {
		return
	}
	c.notices.close()
	c.cancel()
	timer := time.NewTimer(endGrace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}

// run holds a lease, and takes another when it ends, until ctx ends or the user
// has taken the bridge down.
func (c *companion) run(ctx context.Context) {
	keeper, err := c.proxy.keeper(ctx)
	if err != nil {
		c.problem(ctx, err)
		return
	}
	defer keeper.dir.Close()
	c.notices.speakFor(keeper)
	backoff := retry.Backoff{Min: reconnectMin, Max: reconnectMax}
	for ctx.Err() == nil {
		began := time.Now()
		err := c.hold(ctx, keeper)
		if errors.Is(err, share.ErrTakenDown) {
			return
		}
		if !errors.Is(err, share.ErrNobody) {
			c.problem(ctx, err)
		}
		if time.Since(began) > steady {
			backoff.Reset()
		}
		_ = retry.Sleep(ctx, backoff.Next(), nil)
	}
}

// hold takes a lease and returns why it ended.
func (c *companion) hold(ctx context.Context, keeper *keeper) error {
	lease, err := keeper.ensure(ctx)
	if err != nil {
		return err
	}
	defer lease.Close()
	for {
		status, err := lease.Next()
		switch {
		case err != nil:
			return err
		case status.State == share.Waiting && status.Problem != nil:
			c.notices.put(status.Problem)
		case status.State == share.Up:
			c.notices.put(nil)
		}
	}
}

func (c *companion) problem(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.notices.put(&share.Problem{Text: err.Error(), Remedy: hintOf(err)})
	}
}

// keeper finds out whose bridge it is. The host is reached as the proxy reaches
// it, whatever ssh_config says: that may say gpg-bridge proxy.
func (p *proxyRun) keeper(ctx context.Context) (*keeper, error) {
	flags := *p.flags
	options := []string{"HostName=" + escapeTokens(p.host)}
	switch {
	case flags.via != "":
		options = append(options, "ProxyCommand="+escapeTokens(flags.via))
		flags.via = "" // said
	case flags.jump == "":
		options = append(options, "ProxyCommand=none")
	}
	if flags.alias == "" {
		flags.alias = p.host
	}
	config, err := sshfwd.Resolve(ctx, sshfwd.Options{
		Destination: flags.alias, User: flags.user, Port: p.port, ConfigFile: flags.config,
		JumpHosts: flags.jump, Options: options, BatchMode: true,
	})
	if err != nil {
		return nil, err
	}
	dir, err := share.Open()
	if err != nil {
		return nil, err
	}
	return &keeper{
		dir: dir, target: newTarget(config, &flags.local, &flags.remote), flags: &flags, port: p.port, options: options,
	}, nil
}

// escapeTokens: ssh has replaced the tokens (ssh_config(5), TOKENS) already.
func escapeTokens(value string) string { return strings.ReplaceAll(value, "%", "%%") }
