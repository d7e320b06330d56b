package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"time"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
	"gpg-bridge/sshfwd/wire"
)

// attemptInterval is the time between two ConnectionAttempts (ssh_connect_direct in
// OpenSSH's sshconnect.c).
const attemptInterval = time.Second

// DialOptions are what a connection to the host and to its jump hosts needs besides
// ssh_config.
type DialOptions struct {
	Prompter usertext.Asker // nil if nothing may be asked
	Log      *slog.Logger   // not nil

	// StateDir is the directory where login remembers which key was accepted last; ""
	// for none.
	StateDir string

	// Stderr is the stderr of the configuration's commands, such as ProxyCommand; nil
	// discards.
	Stderr io.Writer

	// TokenAsked, if not nil, is called before the ssh-agent is asked to sign with a key
	// on a token, and the function that it returns when the agent has answered. Neither
	// may block.
	TokenAsked func(login.Token) (answered func(login.TokenUse))
}

// Dial connects to the host, through its jump hosts or its ProxyCommand if it has any, and
// logs in, on the jump hosts too. If ctx ends before that is done, Dial returns its cause;
// afterwards the connection does not depend on ctx.
//
// Errors are *config.UnsupportedError, *config.Error, *DialError, *HandshakeError,
// *hostkey.Error and *login.AuthError, each in a *ProxyError if it happened on the way
// through a proxy; all of them have a Hint.
func Dial(ctx context.Context, c *config.Config, options DialOptions) (*Client, error) {
	return (&dialer{config: c, options: options, log: options.Log}).dial(ctx)
}

// A dialer makes one connection. Each jump host has a dialer of its own.
type dialer struct {
	config  *config.Config
	options DialOptions
	log     *slog.Logger // names the jump host, if it is for one
	depth   int          // how many connections are to run through this one
}

func (d *dialer) dial(ctx context.Context) (*Client, error) {
	c := d.config
	if err := checkSupported(c); err != nil {
		return nil, err
	}
	if lacks := c.IgnoredText(); lacks != "" {
		d.log.Info("not supported and ignored", "host", c.OriginalHost, "settings", lacks)
	}
	route, err := d.openRoute(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	below := wire.New(route.Conn)
	login := newHandshake(ctx, below, d)
	conn, err := login.run()
	if err != nil {
		_ = below.Close()
		_ = route.Close()
		return nil, route.explain(err, route.wait())
	}
	client := newClient(conn, d.log)
	client.serveRequests(login.requests, login.hostKeyUpdates(client, d.options.Log))
	client.agent = login.agentForward(conn.SessionID())
	client.wire, client.route, client.account = below, route, login.account()
	client.qos = c.IPQoS
	client.setInteractive(true)
	client.startKeepalive(c.ServerAliveInterval, c.ServerAliveCountMax, below.Received)
	return client, nil
}

// checkSupported refuses settings without which we would talk to another host, or trust
// more.
func checkSupported(c *config.Config) error {
	if c.ProxyCommand == "-" { // which means that stdin and stdout are the connection
		return &config.UnsupportedError{Option: "ProxyCommand", Value: c.ProxyCommand}
	}
	if c.ProxyCommand != "" && c.ProxyUseFdpass && !fdpassExists {
		return &config.UnsupportedError{Option: "ProxyUseFdpass", Value: "yes"}
	}
	return c.CheckDetached()
}

// dialTCP connects to the host, with as many tries as ConnectionAttempts allows. A name
// that does not resolve is not tried again.
func (d *dialer) dialTCP(ctx context.Context) (net.Conn, error) {
	for attempt := 1; ; attempt++ {
		conn, err := d.dialOnce(ctx)
		var dns *net.DNSError
		if err == nil || ctx.Err() != nil || attempt >= d.config.ConnectionAttempts || errors.As(err, &dns) {
			return conn, err
		}
		d.log.Debug("trying again", "attempt", attempt, "err", err)
		pause := time.NewTimer(attemptInterval)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// tcp returns the net.Dialer for the host. With TCPKeepAlive it uses the system's keepalive
// times, as ssh does (ssh_connect_direct in sshconnect.c): Go's own would end a connection
// after two and a half minutes of silence.
func (d *dialer) tcp(local net.Addr) *net.Dialer {
	tcp := &net.Dialer{Timeout: d.config.ConnectTimeout, LocalAddr: local, KeepAlive: -1}
	if d.config.TCPKeepAlive {
		tcp.KeepAliveConfig = SystemKeepAlive()
	}
	return tcp
}

// SystemKeepAlive enables TCP keepalives at the system's times: on Linux the first is sent
// after two hours.
func SystemKeepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: -1, Interval: -1, Count: -1}
}

// dialOnce resolves the name and connects to the first address that answers, from the
// address that BindAddress or BindInterface name. TCP_NODELAY is Go's default.
func (d *dialer) dialOnce(ctx context.Context) (net.Conn, error) {
	c := d.config
	networks := map[string][]string{"inet": {"tcp4"}, "inet6": {"tcp6"}}[c.AddressFamily]
	if networks == nil {
		networks = []string{"tcp"}
		if c.BindAddress == "" && c.BindInterface != "" {
			networks = []string{"tcp6", "tcp4"} // each has its own local address
		}
	}
	var failures []error
	for _, network := range networks {
		local, err := d.localAddr(network)
		if err == nil {
			var conn net.Conn
			if conn, err = d.tcp(local).DialContext(ctx, network, net.JoinHostPort(c.Hostname, strconv.Itoa(c.Port))); err == nil {
				return conn, nil
			}
		}
		failures = append(failures, err)
	}
	return nil, failures[len(failures)-1]
}

// localAddr is the address to connect from, nil for any.
func (d *dialer) localAddr(network string) (net.Addr, error) {
	c := d.config
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

// interfaceAddr is the first address of an interface that is up; a loopback or link-local
// one only if there is no other (check_ifaddrs in sshconnect.c).
func interfaceAddr(name string, wantIPv4 bool) (net.Addr, error) {
	iface, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("BindInterface %q: %v", name, usertext.RootCause(err))
	}
	addrs, err := iface.Addrs()
	if err != nil {
		return nil, fmt.Errorf("BindInterface %q: %v", name, usertext.RootCause(err))
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
