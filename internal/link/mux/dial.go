package mux

import (
	"context"
	"errors"
	"fmt"
	"net"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/private"
)

// dialSocket is the suffix of the socket on which the master listens for us.
const dialSocket = ".look"

// A localForward is a forward like those of ssh -L, through which DialUnix connects: the
// master listens on socket, and connects its clients to path on the host. It is opened once
// and kept, since a master never frees the memory of a forward (add_local_forward in
// OpenSSH's readconf.c).
type localForward struct{ path, socket string }

// A dialedConn is a connection to a socket on the host. The master accepts before it asks the
// host; so if the host refuses, the first Read returns a *link.DialError.
type dialedConn struct {
	*net.UnixConn
	remote string
	heard  bool // something was read; owned by the reader
}

// DialUnix connects to the Unix socket at path, absolute, on the host; see link.Link. If
// nobody listens there, the first Read says so.
func (l *Link) DialUnix(ctx context.Context, path string) (link.Conn, error) {
	l.localMu.Lock()
	defer l.localMu.Unlock()
	c, err := l.control(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the socket %q of the host: %w", path, err)
	}
	defer c.close()
	conn, err := l.dialLocal(ctx, path)
	if err != nil { // not opened yet, or for another path, or its socket was removed
		if err = l.openLocal(ctx, c, path); err == nil {
			conn, err = l.dialLocal(ctx, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the socket %q of the host: %w", path, err)
	}
	return &dialedConn{UnixConn: conn, remote: path}, nil
}

func (l *Link) dialLocal(ctx context.Context, path string) (*net.UnixConn, error) {
	if l.local.path != path {
		return nil, ErrNoMaster
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", l.local.socket)
	if err != nil {
		return nil, err
	}
	if err := private.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

func (l *Link) openLocal(ctx context.Context, c *control, path string) error {
	if l.local.path != "" {
		if err := c.closeOld(ctx, "stop listening", l.local.body()); err != nil {
			return err
		}
	}
	l.local = localForward{}
	local, err := l.socket(dialSocket)
	if err != nil {
		return err
	}
	next := localForward{path, local}
	// A forward that an earlier process left would pass for the one requested here.
	if err := c.closeOld(ctx, "stop listening", next.body()); err != nil {
		return err
	}
	var refused *RefusedError
	err = c.forward(ctx, "listen for us", askOpenForward, next.body())
	if errors.As(err, &refused) {
		return &link.DialError{Path: path, Prohibited: true, Message: refused.Reason}
	}
	if err == nil {
		l.local = next
	}
	return err
}

// closeLocal has the master stop listening, and removes the socket's file, which it leaves.
func (l *Link) closeLocal(ctx context.Context) {
	l.localMu.Lock()
	defer l.localMu.Unlock()
	if l.local.path == "" {
		return
	}
	if c, err := l.control(ctx); err == nil {
		_ = c.forward(ctx, "stop listening", askCloseFwd, l.local.body())
		c.close()
	}
	l.local = localForward{}
	_ = l.options.Dir.Remove(l.options.Name + dialSocket)
}

func (f localForward) body() forwardBody { return streamForward(forwardLocal, f.socket, f.path) }

// Read distinguishes the host's refusal from the end of the connection.
func (c *dialedConn) Read(p []byte) (int, error) {
	n, err := c.UnixConn.Read(p)
	if n > 0 {
		c.heard = true
	}
	if err != nil && !c.heard && !errors.Is(err, net.ErrClosed) {
		err = &link.DialError{Path: c.remote, Message: "the connection was closed"}
	}
	return n, err
}
