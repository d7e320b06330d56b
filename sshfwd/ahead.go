package sshfwd

import (
	"context"

	"golang.org/x/crypto/ssh"
)

// An openedChannel is the server's answer to an open.
type openedChannel struct {
	ch   ssh.Channel
	reqs <-chan *ssh.Request
	err  error
}

// OpenAhead begins to open a session's channel, which the next Session or Run
// takes instead of opening one: its round trip is then made beside another's.
// It does not wait. Where the server refuses (MaxSessions in sshd_config(5)),
// the next Session opens its own. A channel that nobody takes ends with the
// connection.
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
	c.mu.Lock()
	ahead := c.ahead
	c.ahead = nil
	c.mu.Unlock()
	if ahead == nil {
		return openChannel(ctx, c.conn, "session", nil)
	}
	select {
	case opened := <-ahead:
		if opened.err == nil {
			return opened.ch, opened.reqs, nil
		}
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	return openChannel(ctx, c.conn, "session", nil)
}
