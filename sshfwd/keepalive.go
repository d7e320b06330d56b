package sshfwd

import (
	"context"
	"time"
)

// keepaliveRequest is OpenSSH's own (clientloop.c, server_alive_check). Any
// answer, which from sshd is a failure, shows that the server is there.
const keepaliveRequest = "keepalive@openssh.com"

// startKeepalive asks the server for a sign of life every interval, and ends
// the connection with ErrNoAnswer when max intervals passed without one after
// the request (ServerAliveInterval, ServerAliveCountMax in ssh_config(5)). An
// interval of 0 disables it; a max of 0 asks and never ends the connection.
// received counts what came from the server, whatever it was: a busy link is
// alive even if the answer waits in a queue. The Client owns both goroutines.
func (c *Client) startKeepalive(interval time.Duration, max int, received func() uint64) {
	if interval <= 0 {
		return
	}
	c.wg.Go(func() { c.keepalive(interval, max, received) })
}

func (c *Client) keepalive(interval time.Duration, max int, received func() uint64) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	answered := make(chan error, 1) // one request in flight at most
	pending, misses, last := false, 0, received()
	for {
		select {
		case <-c.done:
			return
		case err := <-answered:
			if err != nil {
				return // the connection has ended
			}
			pending, misses = false, 0
		case <-ticker.C:
			if now := received(); now != last {
				last, misses = now, 0
			} else if pending {
				misses++
			}
			if max > 0 && misses >= max {
				c.fail(&LostError{Err: ErrNoAnswer})
				return
			}
			if !pending {
				pending = true
				c.wg.Go(func() { answered <- c.askAlive() })
			}
		}
	}
}

// askAlive blocks until the server answers or the connection ends: x/crypto
// holds its global request lock meanwhile, so closing the connection is the
// only way out, and it is what keepalive does.
func (c *Client) askAlive() error {
	_, _, err := c.conn.SendRequest(keepaliveRequest, true, nil)
	return err
}

// CheckAlive asks the server for a sign of life. Without one until ctx ends
// the connection is given up: Wait then returns a *LostError. It is for the
// moment when there is reason to doubt, such as after a suspend.
func (c *Client) CheckAlive(ctx context.Context) {
	answered := make(chan struct{})
	c.wg.Go(func() {
		defer close(answered)
		_ = c.askAlive()
	})
	select {
	case <-answered:
	case <-ctx.Done():
		c.fail(&LostError{Err: ErrNoAnswer})
	}
}
