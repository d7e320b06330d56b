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
}

// OpenAhead begins to open a session's channel, which the next Session takes
// instead of opening one: its round trip is then made beside others'. It does
// not wait. Where the server refuses (MaxSessions in sshd_config(5)), the next
// Session opens its own; where the server then refuses a Run's, the Run takes
// this one. A channel that nobody takes ends with the connection.
func (c *Client) OpenAhead() {
	ahead := make(chan openedChannel, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ahead != nil {
		return
	}
	c.ahead = ahead
	c.wg.Go(func() {
		ch, reqs, err := c.conn.OpenChannel("session", nil)
		ahead <- openedChannel{ch, reqs, err}
	})
}

// sessionChannel returns the channel that was opened ahead, or opens one.
func (c *Client) sessionChannel(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	if opened, ok := c.takeAhead(ctx); ok {
		return opened.ch, opened.reqs, opened.err
	}
	return c.openSessionChannel(ctx)
}

// openSessionChannel asks again when it was refused, for somewhat over a
// second: with MaxSessions 1 another session of ours may be about to end, and
// sshd counts one that has ended until it has gone round its loop once more
// (channel_garbage_collect in channels.c).
func (c *Client) openSessionChannel(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	for wait := firstOpenWait; ; wait *= 2 {
		ch, reqs, err := openChannel(ctx, c.conn, "session", nil)
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) || wait > lastOpenWait {
			return ch, reqs, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// runChannel opens a channel, or takes the one that was opened ahead where the
// server grants no second one.
func (c *Client) runChannel(ctx context.Context) (ssh.Channel, <-chan *ssh.Request, error) {
	ch, reqs, err := openChannel(ctx, c.conn, "session", nil)
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		return ch, reqs, err
	}
	if opened, ok := c.takeAhead(ctx); ok {
		return opened.ch, opened.reqs, opened.err
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
	case opened = <-ahead:
		return opened, opened.err == nil
	case <-ctx.Done():
		return openedChannel{err: context.Cause(ctx)}, true
	}
}
