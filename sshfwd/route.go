package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// A route is how the bytes get to the host's sshd: a TCP connection, a channel
// through a jump host, or a ProxyCommand. Close ends all of it and does not
// wait; the Client that runs over it owns it, and waits.
type route struct {
	net.Conn
	// proxy names what is between us and the host, for messages; "" for
	// nothing.
	proxy string
	// finish returns when what is behind the route has ended, which it does
	// after Close. Its error is why it ended by itself, if it did and it is
	// known. nil where nothing is behind.
	finish func() error
}

// wait is finish, for every route.
func (r *route) wait() error {
	if r == nil || r.finish == nil {
		return nil
	}
	return r.finish()
}

// explain says that an error came about through a proxy, and adds the cause
// that the proxy had itself.
func (r *route) explain(err, cause error) error {
	var handshake *HandshakeError
	if r.proxy == "" || !errors.As(err, &handshake) {
		return err
	}
	if cause != nil {
		err = cause
	}
	return &ProxyError{Proxy: r.proxy, Err: err}
}

// openRoute connects as ProxyJump or ProxyCommand say, or directly. depth is
// the number of connections that shall run within this one.
func (c *Config) openRoute(ctx context.Context, prompter Prompter, log *slog.Logger, depth int) (*route, error) {
	switch {
	case c.ProxyJump != "":
		return c.openJump(ctx, prompter, log, depth)
	case c.ProxyCommand != "":
		return c.openProxyCommand(ctx, log)
	}
	conn, err := c.dialTCP(ctx, log)
	if err != nil {
		return nil, &DialError{Host: c.Hostname, Port: c.Port, Err: err}
	}
	log.Debug("connected", "host", c.Hostname, "addr", conn.RemoteAddr().String())
	return &route{Conn: conn}, nil
}

// proxied says that the host's address is not known here.
func (c *Config) proxied() bool { return c.ProxyJump != "" || c.ProxyCommand != "" }

// connectLimit is what a connection through a proxy gets to come about.
func (c *Config) connectLimit() time.Duration {
	if c.ConnectTimeout > 0 {
		return c.ConnectTimeout
	}
	return loginTimeout
}

// proxyAddr is the address of a host that another machine or process connects
// to.
type proxyAddr string

func (proxyAddr) Network() string  { return "proxy" }
func (a proxyAddr) String() string { return string(a) }

// ProxyError: the way to the host failed, or what failed had a proxy in
// between.
type ProxyError struct {
	Proxy string // "jump host \"bastion\"", "ProxyCommand \"nc web 22\""
	Err   error
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("through %s: %s", e.Proxy, printableLine(e.Err.Error()))
}

func (e *ProxyError) Unwrap() error { return e.Err }

// Hint says what to do: what the inner error says, if it does.
func (e *ProxyError) Hint() string {
	if inner, ok := e.Err.(interface{ Hint() string }); ok {
		return inner.Hint()
	}
	return "see that it works by itself, and that ssh_config names it right"
}
