package sshfwd

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/terminal"
)

// The first and the last of 7 pauses between the tries to open a session's channel.
const (
	firstOpenWait = 20 * time.Millisecond
	lastOpenWait  = 64 * firstOpenWait
)

// An openedChannel is the server's answer to an open.
type openedChannel struct {
	ch   ssh.Channel
	reqs <-chan *ssh.Request
	err  error
	pty  *askedPTY // nil if no terminal was asked for yet
}

// An aheadChannel is a session's channel that is opened before the call of Session.
type aheadChannel struct {
	opened chan struct{} // closed when result is set
	result openedChannel

	// Guarded by Client.mu. pty is asked for once the other two are set.
	wanted    *terminal.PTY
	isSession bool // Run has a channel of its own, and will not take this one
	pty       *askedPTY
}

// OpenAhead begins to open a session's channel, which the next Session takes
// instead of opening one, so that the round trip overlaps with others. It does
// not wait. If the server refuses (MaxSessions in sshd_config(5)), the next Session
// opens its own. If the server refuses a Run a channel of its own, the Run takes this one.
// A channel that nobody takes ends with the connection.
func (c *Client) OpenAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ahead != nil {
		return
	}
	ahead := &aheadChannel{opened: make(chan struct{})}
	c.ahead = ahead
	c.wg.Go(func() {
		ch, reqs, err := c.openChannel(context.Background(), "session", nil)
		ahead.result = openedChannel{ch: ch, reqs: reqs, err: err}
		close(ahead.opened)
	})
}

// HasAhead reports whether the next Session finds the channel of OpenAhead, or may find it:
// the server has not refused it, and nothing else has taken it.
func (c *Client) HasAhead() bool {
	c.mu.Lock()
	ahead := c.ahead
	c.mu.Unlock()
	if ahead == nil {
		return false
	}
	select {
	case <-ahead.opened:
		return ahead.result.err == nil
	default:
		return true
	}
}

// AskPTYAhead is called after OpenAhead. It asks for the terminal of the next Session on
// the channel that is opened ahead, as soon as a Run has a channel of its own, so that this
// round trip overlaps with others, too. The Session must ask for the same terminal, of
// whatever size, or for none; then it does not take this channel.
func (c *Client) AskPTYAhead(pty *terminal.PTY) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead != nil {
		c.ahead.wanted = pty
		c.askAhead()
	}
}

// leaveAhead notes that a Run has a channel of its own, so that the one opened ahead is
// for the Session.
func (c *Client) leaveAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead != nil {
		c.ahead.isSession = true
		c.askAhead()
	}
}

// askAhead sends pty-req if all that it needs is there. The caller holds mu.
func (c *Client) askAhead() {
	ahead := c.ahead
	if c.closed || ahead.pty != nil || ahead.wanted == nil || !ahead.isSession {
		return
	}
	answers := make(chan answer, 1)
	ahead.pty = &askedPTY{size: ahead.wanted.WindowSize, answer: answers}
	request := ptyRequest(ahead.wanted)
	c.wg.Go(func() {
		<-ahead.opened // at the latest by the end of the connection
		if ahead.result.err == nil {
			answers <- c.send(ahead.result.ch, "pty-req", request)
		}
	})
}

// sessionChannel returns the channel that was opened ahead, or opens one.
func (c *Client) sessionChannel(ctx context.Context, pty *terminal.PTY) openedChannel {
	if opened, ok := c.takeAhead(ctx); ok {
		if opened.pty == nil || pty != nil || opened.err != nil {
			return opened
		}
		c.discard(opened)
	}
	return c.openSessionChannel(ctx)
}

// openSessionChannel tries again when it is refused, for two and a half
// seconds: with MaxSessions 1 another session of ours may be about to end, and
// sshd counts one that has ended until the next turn of its main loop
// (channel_garbage_collect in channels.c).
func (c *Client) openSessionChannel(ctx context.Context) openedChannel {
	for wait := firstOpenWait; ; wait *= 2 {
		ch, reqs, err := c.openChannel(ctx, "session", nil)
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || wait > lastOpenWait {
			return openedChannel{ch: ch, reqs: reqs, err: err}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return openedChannel{err: context.Cause(ctx)}
		}
	}
}

// runChannel opens a channel for a Run, or takes the one that was opened ahead if the
// server does not grant a second one.
func (c *Client) runChannel(ctx context.Context) openedChannel {
	ch, reqs, err := c.openChannel(ctx, "session", nil)
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		c.leaveAhead()
		return openedChannel{ch: ch, reqs: reqs, err: err}
	}
	return c.sessionChannel(ctx, nil)
}

// takeAhead waits for the channel that was opened ahead. ok is false if there was none, or
// the server refused it.
func (c *Client) takeAhead(ctx context.Context) (opened openedChannel, ok bool) {
	c.mu.Lock()
	ahead := c.ahead
	c.ahead = nil
	c.mu.Unlock()
	if ahead == nil {
		return openedChannel{}, false
	}
	select {
	case <-ahead.opened:
		opened = ahead.result
		opened.pty = ahead.pty // askAhead does not change it any more, as c.ahead is another
		return opened, opened.err == nil
	case <-ctx.Done():
		return openedChannel{err: context.Cause(ctx)}, true
	}
}

// discard closes a channel that nobody needs.
func (c *Client) discard(opened openedChannel) {
	c.Go(func() {
		_ = opened.ch.Close()
		ssh.DiscardRequests(opened.reqs)
	})
}
