package sshfwd

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
)

// The waits between the tries to open a session's channel: 6 of them.
const (
	firstOpenWait = 20 * time.Millisecond
	lastOpenWait  = 32 * firstOpenWait
)

// An openedChannel is the server's answer to an open.
type openedChannel struct {
	ch   ssh.Channel
	reqs <-chan *ssh.Request
	err  error
	pty  *askedPTY // nil where none was asked for yet
}

// An aheadChannel is a session's channel that is opened before the Session.
type aheadChannel struct {
	opened chan struct{} // closed when result is there
	result openedChannel

	// Under Client.mu; pty is sent once both of the others are there.
	wanted    *PTY
	isSession bool // a Run has found a channel of its own: it will not take this one
	pty       *askedPTY
}

// OpenAhead begins to open a session's channel, which the next Session takes
// instead of opening one: its round trip is then made beside others'. It does
// not wait. Where the server refuses (MaxSessions in sshd_config(5)), the next
// Session opens its own; where the server then refuses a Run's, the Run takes
// this one. A channel that nobody takes ends with the connection.
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

// AskPTYAhead, after OpenAhead, asks for the terminal of the next Session on
// the channel that is opened ahead, as soon as a Run has a channel of its own.
// The answer then makes its way beside others' and costs the Session nothing.
// That Session has to ask for the same terminal, but for its size, or for none;
// then the channel is not for it.
func (c *Client) AskPTYAhead(pty *PTY) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead != nil {
		c.ahead.wanted = pty
		c.askAhead()
	}
}

// leaveAhead says that a Run has a channel, and leaves the one that is opened
// ahead to the Session.
func (c *Client) leaveAhead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead != nil {
		c.ahead.isSession = true
		c.askAhead()
	}
}

// askAhead sends pty-req when the time has come. It holds mu.
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
			answers <- send(ahead.result.ch, "pty-req", request)
		}
	})
}

// sessionChannel returns the channel that was opened ahead, or opens one.
func (c *Client) sessionChannel(ctx context.Context, pty *PTY) openedChannel {
	if opened, ok := c.takeAhead(ctx); ok {
		if opened.pty == nil || pty != nil || opened.err != nil {
			return opened
		}
		c.discard(opened)
	}
	return c.openSessionChannel(ctx)
}

// openSessionChannel asks again when it was refused, for somewhat over a
// second: with MaxSessions 1 another session of ours may be about to end, and
// sshd counts one that has ended until it has gone round its loop once more
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

// runChannel opens a channel, or takes the one that was opened ahead where the
// server grants no second one.
func (c *Client) runChannel(ctx context.Context) openedChannel {
	ch, reqs, err := c.openChannel(ctx, "session", nil)
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		c.leaveAhead()
		return openedChannel{ch: ch, reqs: reqs, err: err}
	}
	if opened, ok := c.takeAhead(ctx); ok {
		if opened.pty == nil || opened.err != nil {
			return opened
		}
		c.discard(opened)
	}
	return c.openSessionChannel(ctx)
}

// takeAhead waits for the channel that was opened ahead. There is none, with
// ok false, if there never was or the server refused it.
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
		opened.pty = ahead.pty // nobody asks any more: c.ahead is another
		return opened, opened.err == nil
	case <-ctx.Done():
		return openedChannel{err: context.Cause(ctx)}, true
	}
}

// discard closes a channel that nobody has a use for.
func (c *Client) discard(opened openedChannel) {
	c.own(func() {
		_ = opened.ch.Close()
		ssh.DiscardRequests(opened.reqs)
	})
}
