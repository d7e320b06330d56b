package sshfwd

import (
	"context"
	"time"
)

// keepaliveRequest is OpenSSH's own (clientloop.c, server_alive_check). Any
// answer, which from sshd is a failure, shows that the server is there.
const keepaliveRequest = "keepalive@openssh.com"

// startKeepalive asks the server for a sign of life every interval, and ends the connection
// with ErrNoAnswer if max intervals after a request passed without one
// (ServerAliveInterval, ServerAliveCountMax in ssh_config(5)). With an interval of 0 it
// does nothing; with a max of 0 it asks but never ends the connection. received returns how
// many bytes have come from the server: any are a sign of life, since on a busy link the
// answer may wait in a queue. The Client owns both goroutines.
func (c *Client) startKeepalive(interval time.Duration, max int, received func() uint64) {
	if interval <= 0 {
		return
	}
	c.wg.Go(func() { c.keepalive(interval, max, received) })
}

func (c *Client) keepalive(interval time.Duration, max int, received func() uint64) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	answered := make(chan error, 1) // of at most one request
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
				c.fail(lost(ErrNoAnswer))
				return
			}
			if !pending {
				pending = true
				c.wg.Go(func() { answered <- c.askAlive() })
			}
		}
	}
}

// askAlive blocks until the server answers or the connection ends. x/crypto holds its lock
// for global requests meanwhile, so only the end of the connection can stop it; keepalive
// closes it.
func (c *Client) askAlive() error {
	_, _, err := c.conn.SendRequest(keepaliveRequest, true, nil)
	return err
}

// CheckAlive asks the server for a sign of life. If there is none until ctx ends, the
// connection is ended: Wait then returns a *link.LostError. It is meant for moments of
// doubt, such as after a suspend.
func (c *Client) CheckAlive(ctx context.Context) {
	answered := make(chan struct{})
	c.wg.Go(func() {
		defer close(answered)
		_ = c.askAlive()
	})
	select {
	case <-answered:
	case <-ctx.Done():
		c.fail(lost(ErrNoAnswer))
	}
}
