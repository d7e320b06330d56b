package sshfwd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
)

// directStreamLocal is the channel type that connects to a Unix socket of the
// server's host (OpenSSH's PROTOCOL section 2.4).
const directStreamLocal = "direct-streamlocal@openssh.com"

// isUp reports whether the connection to the server is up, as far as the system can tell
// without sending data: on Linux, and if the TCP connection is this machine's. Otherwise it
// is true. It may take a few seconds; ctx bounds it.
func (c *Client) isUp(ctx context.Context) bool {
	if c.wire == nil {
		return true
	}
	switch conn := c.wire.Conn.(type) {
	case *net.TCPConn:
		return isUp(ctx, conn)
	case *jumpConn:
		return conn.hop.isUp(ctx)
	}
	return true
}

// DialUnix implements link.Link. It is OpenUnix, but sends nothing while the connection is
// down; the error is then link.ErrUnanswered.
func (c *Client) DialUnix(ctx context.Context, path string) (link.Conn, error) {
	if !c.isUp(ctx) {
		return nil, link.ErrUnanswered
	}
	conn, err := c.OpenUnix(ctx, path)
	if err != nil {
		return nil, err // not a nil *Conn
	}
	return conn, nil
}

// OpenUnix connects to the Unix socket at path, absolute, on the server's host. ctx bounds
// the opening only. While the server has not answered an earlier call whose ctx has ended,
// nothing is sent: that answer is waited for. The error is a *link.DialError if the server
// refused, link.ErrUnanswered if ctx ends before that earlier answer, and a *link.LostError
// if the connection was lost.
func (c *Client) OpenUnix(ctx context.Context, path string) (*Conn, error) {
	if err := c.unanswered.wait(ctx, c.ended); err != nil {
		return nil, err
	}
	payload := ssh.Marshal(struct {
		Path      string
		Reserved0 string
		Reserved1 uint32
	}{Path: path})
	conn, err := c.Open(ctx, directStreamLocal, payload)
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, &link.DialError{
			Path:        path,
			Prohibited:  refused.Reason == ssh.Prohibited,
			Unsupported: refused.Reason == ssh.UnknownChannelType,
			Message:     refused.Message,
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			err = cmp.Or(c.lostWith(ctx), err)
		}
		return nil, fmt.Errorf("connect to the socket %q of the server: %w", path, err)
	}
	return conn, nil
}
