package mux

import (
	"context"
	"errors"
	"fmt"
	"net"

	"gpg-bridge/internal/private"
	"gpg-bridge/sshfwd"
)

// lookSocket is the name's end of the socket on which the master listens.
const lookSocket = ".look"

// A lookout is a forward the other way: who connects to the local socket reaches
// the remote one. It is opened once, since a master never forgets the room that a
// forward took (add_local_forward in OpenSSH's readconf.c).
type lookout struct{ remote, local string }

// A LookConn is a connection that was made from the host's side. The master
// connects before it asks the host: that the host refused shows in the first
// Read, whose error is a *sshfwd.DialUnixError then.
type LookConn struct {
	*net.UnixConn
	remote string
	heard  bool // owned by the reader
}

// DialUnix connects to the Unix socket at path, absolute, on the host. ctx bounds
// the opening only.
func (l *Link) DialUnix(ctx context.Context, path string) (*LookConn, error) {
	l.looking.Lock()
	defer l.looking.Unlock()
	c, err := l.control(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the socket %q of the host: %w", path, err)
	}
	defer c.close()
	conn, err := l.dialLookout(ctx, path)
	if err != nil { // not opened yet, or for another path, or its socket was removed
		if err = l.openLookout(ctx, c, path); err == nil {
			conn, err = l.dialLookout(ctx, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the socket %q of the host: %w", path, err)
	}
	return &LookConn{UnixConn: conn, remote: path}, nil
}

func (l *Link) dialLookout(ctx context.Context, path string) (*net.UnixConn, error) {
	if l.lookout.remote != path {
		return nil, ErrNoMaster
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", l.lookout.local)
	if err != nil {
		return nil, err
	}
	if err := private.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

func (l *Link) openLookout(ctx context.Context, c *control, path string) error {
	var refused *RefusedError
	if l.lookout.remote != "" {
		if err := c.forward(ctx, "stop listening", askCloseFwd, l.lookout.body()); err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	l.lookout = lookout{}
	local, err := l.socket(lookSocket)
	if err != nil {
		return err
	}
	next := lookout{path, local}
	// What a process before us left would pass for the answer to our request.
	if err := c.forward(ctx, "stop listening", askCloseFwd, next.body()); err != nil && !errors.As(err, &refused) {
		return err
	}
	err = c.forward(ctx, "listen for us", askOpenForward, next.body())
	if errors.As(err, &refused) {
		return &sshfwd.DialUnixError{Path: path, Prohibited: true, Message: refused.Reason}
	}
	if err == nil {
		l.lookout = next
	}
	return err
}

// closeLookout has the master stop listening, which leaves the socket's file.
func (l *Link) closeLookout(ctx context.Context) {
	l.looking.Lock()
	defer l.looking.Unlock()
	if l.lookout.remote == "" {
		return
	}
	if c, err := l.control(ctx); err == nil {
		_ = c.forward(ctx, "stop listening", askCloseFwd, l.lookout.body())
		c.close()
	}
	l.lookout = lookout{}
	_ = l.options.Dir.Remove(l.options.Name + lookSocket)
}

func (o lookout) body() forwardBody { return streamForward(forwardLocal, o.local, o.remote) }

// Read tells a refusal from an end.
func (c *LookConn) Read(p []byte) (int, error) {
	n, err := c.UnixConn.Read(p)
	if n > 0 {
		c.heard = true
	}
	if err != nil && !c.heard && !errors.Is(err, net.ErrClosed) {
		err = &sshfwd.DialUnixError{Path: c.remote, Message: "the connection was closed"}
	}
	return n, err
}
