package sshfwd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/wire"
)

// A Client is one authenticated SSH connection. Its methods may be called from
// any goroutine. Close ends it and everything that was opened through it.
type Client struct {
	conn *ssh.Client
	log  *slog.Logger

	wire  *wire.Conn // below conn; nil in tests that bring their own
	route *route     // what conn runs over; nil in tests that bring their own

	forwarder func() (*forwarder, error) // makes it at the first call
	agent     *agentForward              // what ForwardAgent needs; set by Dial
	account   account                    // who logged in; set by Dial
	hostKeys  *hostKeyUpdates            // what comes of UpdateHostKeys; set by Dial
	qos       config.QoS                 // set by Dial
	conns     connList

	wg    sync.WaitGroup // the goroutines that Close waits for
	done  chan struct{}  // closed by the first Close
	ended chan struct{}  // closed when the connection has ended
	inUse chan struct{}  // closed by use
	use   func()         // notes that what the user waits for has been asked of the server

	unanswered unansweredOpens
	answers    answerTimes // see RoundTrip

	mu     sync.Mutex
	ahead  *aheadChannel // the channel of OpenAhead, or nil
	closed bool
	cause  error // why we ended the connection; nil if by Close
}

// newClient wraps an authenticated connection; Client owns conn from here on.
func newClient(conn *ssh.Client, log *slog.Logger) *Client {
	c := &Client{conn: conn, log: log, done: make(chan struct{}), ended: make(chan struct{}), inUse: make(chan struct{})}
	c.use = sync.OnceFunc(func() { close(c.inUse) })
	c.qos = config.QoS{Interactive: config.NoQoS, Bulk: config.NoQoS}
	c.wg.Go(func() {
		defer close(c.ended)
		_ = conn.Wait()
	})
	c.forwarder = sync.OnceValues(func() (*forwarder, error) { return c.newForwarder(DefaultMaxConns) })
	return c
}

var _ link.Link = (*Client)(nil)

// Forward implements link.Link; see ForwardUnix.
func (c *Client) Forward(ctx context.Context, path string, serve func(ctx context.Context, conn link.Conn)) (link.Forward, error) {
	forward, err := c.ForwardUnix(ctx, path, func(ctx context.Context, conn *Conn) { serve(ctx, conn) })
	if err != nil {
		return nil, err // not a nil *Forward
	}
	return forward, nil
}

// ForwardUnix asks the server to listen on path, absolute on its host, and calls
// serve for each connection there, in a goroutine of its own. The Conn is
// closed when serve returns. The ctx of serve has ctx's values and ends
// when the Forward is closed or the connection ends; ctx itself bounds the
// request only. serve must return soon after its Conn is closed: Close waits.
//
// serve may be called before ForwardUnix returns: the server listens before its
// reply arrives.
//
// The error is a *link.RefusedError if the server refused, a *link.PathError if it was not
// asked, and a *link.LostError if the connection was lost. If ctx ends first, the forward
// is cancelled as soon as it is granted; until then the path cannot be forwarded again.
func (c *Client) ForwardUnix(ctx context.Context, path string, serve func(ctx context.Context, conn *Conn)) (*Forward, error) {
	forwarder, err := c.forwarder()
	if err != nil {
		return nil, err
	}
	return forwarder.Forward(ctx, path, serve)
}

// SharedBy is 0: the connection is the Client's own.
func (c *Client) SharedBy() int { return 0 }

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

// Ended is closed when the connection has ended.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Go runs work in a goroutine that Close waits for, or returns false after
// Close. work ends with the connection.
func (c *Client) Go(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(work)
	return true
}

// fail ends the connection for a reason that Wait returns. It does not wait, and leaves the
// goroutines to Close. Only the first reason is kept.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil && !c.closed {
		c.cause = cause
	}
	c.mu.Unlock()
	_ = c.conn.Close()
}

// Wait waits for the end of the connection. It returns nil after Close, else the cause, a
// *link.LostError.
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
	return lost(err)
}

// whyEnded waits for the end of the connection and returns the cause, which is
// net.ErrClosed after Close.
func (c *Client) whyEnded() error { return cmp.Or(c.Wait(), net.ErrClosed) }
