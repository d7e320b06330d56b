package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"
)

// attemptInterval is between two ConnectionAttempts (ssh_connect_direct in
// OpenSSH's sshconnect.c).
const attemptInterval = time.Second

// Dial connects to the host, through its jump hosts or its ProxyCommand if it
// has any, and logs in; on jump hosts too. prompter may be nil: then nothing is
// asked. The connection is not bound to ctx once Dial has returned; until then,
// cancelling ctx ends it at any point and Dial returns the cause.
//
// Errors are *UnsupportedError, *ConfigError, *DialError, *HandshakeError,
// *HostKeyError and *AuthError, in a *ProxyError where one came about on the
// way; all of them have a Hint.
func Dial(ctx context.Context, c *Config, prompter Prompter, log *slog.Logger) (*Client, error) {
	return dialHost(ctx, c, prompter, log, 0)
}

func dialHost(ctx context.Context, c *Config, prompter Prompter, log *slog.Logger, depth int) (*Client, error) {
	if err := c.checkSupported(); err != nil {
		return nil, err
	}
	if len(c.Ignored) > 0 {
		log.Info("not supported and ignored", "host", c.OriginalHost, "settings", c.Ignored)
	}
	route, err := c.openRoute(ctx, prompter, log, depth)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	wire := newWireConn(route.Conn)
	login := newHandshake(ctx, c, wire, prompter, log)
	conn, err := login.run()
	if err != nil {
		_ = wire.Close()
		_ = route.Close()
		return nil, route.explain(err, route.wait())
	}
	client := newClient(conn, log)
	client.agent = login.agentForward(conn.SessionID())
	client.wire, client.route = wire, route
	client.startKeepalive(c.ServerAliveInterval, c.ServerAliveCountMax, wire.received)
	return client, nil
}

// checkSupported refuses what would change whom we talk to, or whom we trust.
func (c *Config) checkSupported() error {
	if c.ProxyCommand == "-" { // stdin and stdout are the connection
		return &UnsupportedError{"ProxyCommand", c.ProxyCommand}
	}
	if c.ProxyCommand != "" && c.ProxyUseFdpass && !fdpassExists {
		return &UnsupportedError{"ProxyUseFdpass", "yes"}
	}
	return nil
}

// dialTCP connects to the host, as often as ConnectionAttempts allows. A name
// that does not resolve is not tried again.
func (c *Config) dialTCP(ctx context.Context, log *slog.Logger) (net.Conn, error) {
	for attempt := 1; ; attempt++ {
		conn, err := c.dialOnce(ctx)
		var dns *net.DNSError
		if err == nil || ctx.Err() != nil || attempt >= c.ConnectionAttempts || errors.As(err, &dns) {
			return conn, err
		}
		log.Debug("trying again", "attempt", attempt, "err", err)
		pause := time.NewTimer(attemptInterval)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// dialOnce resolves the name and connects to the first address that answers,
// from the address that BindAddress or BindInterface wants. TCP_NODELAY is Go's
// default.
func (c *Config) dialOnce(ctx context.Context) (net.Conn, error) {
	networks := map[string][]string{"inet": {"tcp4"}, "inet6": {"tcp6"}}[c.AddressFamily]
	if networks == nil {
		networks = []string{"tcp"}
		if c.BindAddress == "" && c.BindInterface != "" {
			networks = []string{"tcp6", "tcp4"} // each has its own local address
		}
	}
	var failures []error
	for _, network := range networks {
		local, err := c.localAddr(network)
		if err == nil {
			d := net.Dialer{Timeout: c.ConnectTimeout, LocalAddr: local}
			if !c.TCPKeepAlive {
				d.KeepAlive = -1
			}
			var conn net.Conn
			if conn, err = d.DialContext(ctx, network, net.JoinHostPort(c.Hostname, strconv.Itoa(c.Port))); err == nil {
				return conn, nil
			}
		}
		failures = append(failures, err)
	}
	return nil, failures[len(failures)-1]
}

// localAddr is the address to connect from, nil for any.
func (c *Config) localAddr(network string) (net.Addr, error) {
	switch {
	case c.BindAddress != "":
		local, err := net.ResolveTCPAddr(network, net.JoinHostPort(c.BindAddress, "0"))
		if err != nil {
			return nil, fmt.Errorf("BindAddress: %w", err)
		}
		return local, nil
	case c.BindInterface != "":
		return interfaceAddr(c.BindInterface, network == "tcp4")
	}
	return nil, nil
}

// interfaceAddr is the first address of an interface that is up, one for local
// use only if there is no other (check_ifaddrs in sshconnect.c).
func interfaceAddr(name string, wantIPv4 bool) (net.Addr, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("BindInterface %q: %v", name, rootCause(err))
	}
	addrs, err := iface.Addrs()
	if err != nil {
		return nil, fmt.Errorf("BindInterface %q: %v", name, rootCause(err))
	}
	var local *net.TCPAddr
	for _, addr := range addrs {
		ip, ok := addr.(*net.IPNet)
		if !ok || iface.Flags&net.FlagUp == 0 || (ip.IP.To4() != nil) != wantIPv4 {
			continue
		}
		found := &net.TCPAddr{IP: ip.IP}
		if !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return found, nil
		}
		if ip.IP.IsLinkLocalUnicast() && !wantIPv4 {
			found.Zone = name
		}
		if local == nil {
			local = found
		}
	}
	if local == nil {
		return nil, fmt.Errorf("BindInterface %q has no address to connect from", name)
	}
	return local, nil
}
