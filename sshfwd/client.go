package sshfwd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Client is one authenticated SSH connection. Its methods may be called from
// any goroutine. Close ends it and everything that was opened through it.
type Client struct {
	conn *ssh.Client
	log  *slog.Logger

	wire  *wireConn // below conn; nil in tests that bring their own
	route *route    // what conn runs over; nil in tests that bring their own

	forwarder func() (*Forwarder, error) // makes it at the first call
	agent     *agentForward              // what ForwardAgent needs; set by Dial

	wg    sync.WaitGroup // the goroutines of the keepalive, its request in flight, OpenAhead, ended
	done  chan struct{}  // closed by the first Close
	ended chan struct{}  // closed when the connection has ended

	mu     sync.Mutex
	ahead  *aheadChannel // what OpenAhead has opened, nil for nothing
	closed bool
	cause  error // why this side ended the connection, nil for Close
}

// newClient wraps an authenticated connection; Client owns conn from here on.
func newClient(conn *ssh.Client, log *slog.Logger) *Client {
	c := &Client{conn: conn, log: log, done: make(chan struct{}), ended: make(chan struct{})}
	c.wg.Go(func() {
		defer close(c.ended)
		_ = conn.Wait()
	})
	c.forwarder = sync.OnceValues(func() (*Forwarder, error) { return c.Forwarder(ForwarderConfig{}) })
	return c
}

// Forward asks the server to listen on a socket, with the Client's one
// Forwarder in its default configuration; see Forwarder.Forward.
func (c *Client) Forward(ctx context.Context, path string, serve func(ctx context.Context, conn Conn)) (*Forward, error) {
	forwarder, err := c.forwarder()
	if err != nil {
		return nil, err
	}
	return forwarder.Forward(ctx, path, serve)
}

// Close ends the connection, dead or alive, and returns when the Client's own
// goroutines have ended; Wait also waits for those of x/crypto. A second Close
// is a no-op. The Client's goroutines do not call it: they use fail.
func (c *Client) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	var err error
	if first {
		close(c.done)
		err = c.conn.Close()
	}
	_ = c.route.wait()
	c.wg.Wait()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// own runs work in a goroutine that Close waits for, or returns false after
// Close. work ends with the connection.
func (c *Client) own(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(work)
	return true
}

// fail ends the connection for a reason that Wait is to give. It does not wait
// and leaves the goroutines to Close. Only the first reason is kept.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil && !c.closed {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.conn.Close()
}

// Wait returns when the connection has ended: nil after Close, else the cause,
// which is a *LostError.
func (c *Client) Wait() error {
	err := c.conn.Wait()
	if cause := c.route.wait(); cause != nil {
		err = &ProxyError{Proxy: c.route.proxy, Err: cause}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cause != nil:
		return c.cause
	case c.closed:
		return nil
	}
	return &LostError{Err: err}
}
