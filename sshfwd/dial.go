package sshfwd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
)

// Dial connects to the host and logs in. prompter may be nil: then nothing is
// asked. The connection is not bound to ctx once Dial has returned; until then,
// cancelling ctx ends it at any point and Dial returns the cause.
//
// Errors are *UnsupportedError, *ConfigError, *DialError, *HandshakeError,
// *HostKeyError and *AuthError; all of them have a Hint.
func Dial(ctx context.Context, c *Config, prompter Prompter, log *slog.Logger) (*Client, error) {
	if err := c.checkSupported(); err != nil {
		return nil, err
	}
	tcp, err := c.dialTCP(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &DialError{Host: c.Hostname, Port: c.Port, Err: err}
	}
	log.Debug("connected", "host", c.Hostname, "addr", tcp.RemoteAddr().String())
	wire := newWireConn(tcp)
	conn, err := newHandshake(ctx, c, wire, prompter, log).run()
	if err != nil {
		_ = tcp.Close()
		return nil, err
	}
	client := newClient(conn, log)
	client.startKeepalive(c.ServerAliveInterval, c.ServerAliveCountMax, wire.received)
	return client, nil
}

// checkSupported refuses what would change whom we talk to, or whom we trust.
func (c *Config) checkSupported() error {
	for _, option := range []UnsupportedError{
		{"ProxyJump", c.ProxyJump}, {"ProxyCommand", c.ProxyCommand}, {"BindInterface", c.BindInterface},
		{"KnownHostsCommand", c.KnownHostsCommand}, {"RevokedHostKeys", c.RevokedHostKeys},
	} {
		if option.Value != "" {
			return &option
		}
	}
	return nil
}

// dialTCP resolves the name and connects to the first address that answers.
// TCP_NODELAY is Go's default.
func (c *Config) dialTCP(ctx context.Context) (net.Conn, error) {
	network := map[string]string{"inet": "tcp4", "inet6": "tcp6"}[c.AddressFamily]
	if network == "" {
		network = "tcp"
	}
	d := net.Dialer{Timeout: c.ConnectTimeout}
	if !c.TCPKeepAlive {
		d.KeepAlive = -1
	}
	if c.BindAddress != "" {
		local, err := net.ResolveTCPAddr(network, net.JoinHostPort(c.BindAddress, "0"))
		if err != nil {
			return nil, fmt.Errorf("BindAddress: %w", err)
		}
		d.LocalAddr = local
	}
	return d.DialContext(ctx, network, net.JoinHostPort(c.Hostname, strconv.Itoa(c.Port)))
}
