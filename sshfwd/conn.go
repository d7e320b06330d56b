package sshfwd

import (
	"context"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// A Conn is one connection through a socket or port on the server's host. Read ends
// with io.EOF when the peer has half-closed; CloseWrite half-closes the other
// way and leaves Read as it is. One goroutine may read while one other writes
// and half-closes; Close may be called from any.
//
// Reads and writes go straight to the SSH channel, in the caller's goroutine.
// As a consequence, a Read or Write that is blocked when Close is called returns only
// when the server has answered the close, or the connection has ended; x/crypto/ssh
// has no other way to wake it. sshd answers at once, unless it still has data for a
// process that does not read.
type Conn struct {
	ssh.Channel
	left   func()
	closed chan struct{} // closed by Close
	once   sync.Once
	gone   chan struct{} // closed when the server has closed the channel
	done   chan struct{} // closed when both sides have closed it
}

// Accept accepts a channel that the server opens.
func (c *Client) Accept(newCh ssh.NewChannel) (*Conn, error) { return c.conns.accept(newCh) }

func (l *connList) accept(newCh ssh.NewChannel) (*Conn, error) {
	kind, extra := newCh.ChannelType(), newCh.ExtraData()
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(ch, reqs, l.add(kind, extra)), nil
}

// newConn takes over an open channel, and its requests, which are all refused. Its
// goroutine ends with the channel, and calls left.
func newConn(ch ssh.Channel, reqs <-chan *ssh.Request, left func()) *Conn {
	c := &Conn{Channel: ch, left: left, closed: make(chan struct{}), gone: make(chan struct{}), done: make(chan struct{})}
	go c.run(reqs)
	return c
}

// run closes the channel when Close is called, and refuses requests, until both we and the
// server have closed the channel (reqs ends).
func (c *Conn) run(reqs <-chan *ssh.Request) {
	defer close(c.done)
	defer c.left()
	for closed := c.closed; closed != nil || reqs != nil; {
		select {
		case <-closed:
			_ = c.Channel.Close()
			closed = nil
		case req, ok := <-reqs:
			if !ok {
				close(c.gone)
				reqs = nil
			} else if req.WantReply {
				_ = req.Reply(false, nil)
			}
		}
	}
}

// Close closes the connection in both directions. It waits neither for the peer nor for
// the link, which may be dead. A second Close is a no-op.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// End closes the connection and waits until the server has closed it, too, or the SSH
// connection has ended.
func (c *Conn) End() {
	_ = c.Close()
	<-c.done
}

// Open opens a channel of the given type with its specific data (RFC 4254 section 5.1).
// ctx bounds the opening only. The error is an *ssh.OpenChannelError if the server
// refused.
func (c *Client) Open(ctx context.Context, kind string, extra []byte) (*Conn, error) {
	ch, reqs, err := c.openChannel(ctx, kind, extra)
	if err != nil {
		return nil, err
	}
	return newConn(ch, reqs, c.conns.add(kind, extra)), nil
}

// Incoming returns the channels of a type that the server opens from now on, until the
// connection ends. Each must be accepted or rejected without delay. The error is ErrTaken
// if Incoming was called for this type before.
func (c *Client) Incoming(kind string) (<-chan ssh.NewChannel, error) {
	in := c.conn.HandleChannelOpen(kind)
	if in == nil {
		return nil, ErrTaken
	}
	return in, nil
}

// Request sends the server a global request (RFC 4254 section 4), and waits for the answer
// or the end of the connection.
func (c *Client) Request(name string, payload []byte) (ok bool, answer []byte, err error) {
	return c.conn.SendRequest(name, true, payload)
}

// openChannel opens a channel of the given type. If ctx ends first, the channel is closed
// should it open after all; the goroutine that waits for it ends then, or with the
// connection.
//
// Package ssh forgets a channel if it sends the open while it ends the connection
// (mux.loop drops the channels before it closes the transport), and OpenChannel then never
// returns. So this also returns at the connection's end, and leaves that goroutine behind.
func (c *Client) openChannel(ctx context.Context, kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	result := make(chan openedChannel)
	go func() {
		asked := time.Now()
		ch, reqs, err := c.conn.OpenChannel(kind, extra)
		c.answers.note(asked, err)
		select {
		case result <- openedChannel{ch: ch, reqs: reqs, err: err}:
		case <-ctx.Done():
			c.unanswered.answered()
			if err == nil {
				_ = ch.Close()
				ssh.DiscardRequests(reqs)
			}
		case <-c.ended:
		}
	}()
	select {
	case r := <-result:
		return r.ch, r.reqs, r.err
	case <-ctx.Done():
		c.unanswered.gaveUp()
		return nil, nil, context.Cause(ctx)
	case <-c.ended:
		if err := c.Wait(); err != nil {
			return nil, nil, err
		}
		return nil, nil, ErrConnectionEnded
	}
}
