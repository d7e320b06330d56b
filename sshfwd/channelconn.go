package sshfwd

import (
	"context"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// A Conn is one connection through a socket on the server's host. Read ends
// with io.EOF when the peer has half-closed; CloseWrite half-closes the other
// way and leaves Read as it is. One goroutine may read while one other writes
// and half-closes; Close may be called from any.
//
// Reads and writes go straight to the SSH channel, in the caller's goroutine.
// The price: a Read or Write that is blocked when Close is called returns when
// the server has answered the close, or the connection has ended; x/crypto/ssh
// has no other way to wake it. sshd answers at once, unless it still holds data
// for a process that does not read.
type Conn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// A channelConn is a Conn on an SSH channel.
type channelConn struct {
	ssh.Channel
	closed chan struct{} // closed by Close
	once   sync.Once
	gone   chan struct{} // closed when the server has closed the channel
	done   chan struct{} // closed when both sides have
}

// newChannelConn takes over an open channel and its requests, all of which are
// refused. Its goroutine ends with the channel.
func newChannelConn(ch ssh.Channel, reqs <-chan *ssh.Request) *channelConn {
	c := &channelConn{Channel: ch, closed: make(chan struct{}), gone: make(chan struct{}), done: make(chan struct{})}
	go c.life(reqs)
	return c
}

// life closes the channel when Close was called, and refuses requests, until
// the channel is over on our side and on the peer's (reqs ends).
func (c *channelConn) life(reqs <-chan *ssh.Request) {
	defer close(c.done)
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

// Close ends the connection both ways and waits neither for the peer nor for
// the link, which may be dead. A second Close is a no-op.
func (c *channelConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// openChannel opens a channel of the given type. When ctx ends first, the
// channel is closed if it opens after all; the goroutine that waits for it
// ends then, or with the connection.
//
// Package ssh forgets a channel whose open it sends while it ends the connection
// (mux.loop drops the channels before it closes the transport): nobody answers
// it. So the connection's end is waited for here; that goroutine then stays.
func (c *Client) openChannel(ctx context.Context, kind string, extra []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	result := make(chan openedChannel)
	go func() {
		ch, reqs, err := c.conn.OpenChannel(kind, extra)
		select {
		case result <- openedChannel{ch: ch, reqs: reqs, err: err}:
		case <-ctx.Done():
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
		return nil, nil, context.Cause(ctx)
	case <-c.ended:
		if err := c.Wait(); err != nil {
			return nil, nil, err
		}
		return nil, nil, errConnectionEnded
	}
}
