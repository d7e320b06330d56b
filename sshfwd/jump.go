package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// directTCP is the channel type that connects the server's host to another
// (RFC 4254, 7.2).
const directTCP = "direct-tcpip"

// ForwardedTCP is the type of the channels of a tcpip-forward (RFC 4254 section 7.2).
const ForwardedTCP = "forwarded-tcpip"

// maxJumps is the length of the longest chain of jump hosts. ssh has no limit, and never
// ends if two hosts are each to be reached through the other.
const maxJumps = 16

// openJump connects to the last jump host as ssh does, which runs another ssh
// for it (ssh.c, "construct a ProxyCommand"): with its own configuration from
// the same file, the jump hosts before it as -J, and none of our other options.
// If there are none before it, its own ProxyJump or ProxyCommand applies.
//
// Unlike in ssh, BatchMode also applies to the jump hosts.
func (d *dialer) openJump(ctx context.Context) (*route, error) {
	options, err := d.config.JumpOptions()
	if err != nil {
		return nil, err
	}
	proxy := fmt.Sprintf("jump host %q", options.Destination)
	if d.depth >= maxJumps {
		return nil, &config.Error{Problem: "too many jump hosts", Advice: "see with `ssh -G` whether two hosts are each reached through the other"}
	}
	hop, err := d.dialJump(ctx, options)
	if err != nil {
		return nil, &ProxyError{Proxy: proxy, Err: err, IsWay: true}
	}
	conn, err := hop.dialThrough(ctx, d.config)
	if err != nil {
		_ = hop.Close()
		_ = hop.Wait()
		return nil, &ProxyError{Proxy: proxy, Err: err, IsWay: true}
	}
	return &route{Conn: conn, proxy: proxy, finish: conn.finish}, nil
}

func (d *dialer) dialJump(ctx context.Context, o config.Options) (*Client, error) {
	c, err := config.Resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	outer, log := d.config, d.log.With("jump", o.Destination)
	if c.Hostname == outer.Hostname && c.Port == outer.Port && c.User == outer.User && c.ProxyJump == outer.ProxyJump {
		return nil, &config.Error{Problem: "the jump host is the host itself", Advice: "set ProxyJump none for the jump host"}
	}
	for _, warning := range c.Warnings {
		log.Warn("ssh says", "text", warning)
	}
	return (&dialer{config: c, options: d.options, log: log, depth: d.depth + 1}).dial(ctx)
}

// A jumpConn is a connection that the jump host makes for us. It owns the connection to
// the jump host and closes it, too, which also ends reads and writes when the jump host no
// longer answers.
type jumpConn struct {
	*Conn
	proxied
	hop *Client
}

// dialThrough has the jump host connect to the host of c, as ssh -W does.
func (c *Client) dialThrough(ctx context.Context, to *config.Config) (*jumpConn, error) {
	limited, cancel := context.WithTimeout(ctx, to.ConnectLimit())
	defer cancel()
	payload := ssh.Marshal(struct {
		Host           string
		Port           uint32
		Originator     string
		OriginatorPort uint32
	}{to.Hostname, uint32(to.Port), "127.0.0.1", 0})
	conn, err := c.Open(limited, directTCP, payload)
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused):
		return nil, &JumpError{Host: to.Hostname, Port: to.Port, Prohibited: refused.Reason == ssh.Prohibited, Message: refused.Message}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &DialError{Host: to.Hostname, Port: to.Port, Err: err}
	}
	c.use()
	addr := net.JoinHostPort(to.Hostname, strconv.Itoa(to.Port))
	return &jumpConn{conn, proxied{addr}, c}, nil
}

// Close ends both connections, dead or alive, and does not wait.
func (c *jumpConn) Close() error {
	_ = c.Conn.Close()
	_ = c.hop.conn.Close()
	return nil
}

// finish waits for the end of the connection to the jump host. It returns why we gave that
// up, or nil.
func (c *jumpConn) finish() error {
	<-c.done
	_ = c.hop.Close()
	_ = c.hop.Wait()
	c.hop.mu.Lock()
	defer c.hop.mu.Unlock()
	return c.hop.cause
}

// A JumpError says that the jump host did not connect to the next host.
type JumpError struct {
	Host string
	Port int
	// Prohibited means that it does not allow it; else it could not.
	Prohibited bool
	// Message is the jump host's own text, not to be trusted; may be empty.
	Message string
}

func (e *JumpError) Error() string {
	what := "cannot connect"
	if e.Prohibited {
		what = "may not connect"
	}
	return fmt.Sprintf("it %s to %s (it says %q)", what, net.JoinHostPort(e.Host, strconv.Itoa(e.Port)), e.Message)
}

// SSHSays is usertext.Spoken (channel_input_open_failure in channels.c, of ssh -W).
func (e *JumpError) SSHSays() (words []usertext.Message, complete bool) {
	reason := "connect failed"
	if e.Prohibited {
		reason = "administratively prohibited"
	}
	return append(oneLine(usertext.Error, "channel 0: open failed: %s: %s", reason, usertext.Quoted(e.Message)),
		oneLine(usertext.Fatal, "stdio forwarding failed")...), true
}

// Hint says what to do.
func (e *JumpError) Hint() string {
	if e.Prohibited {
		return "set AllowTcpForwarding yes, and PermitOpen, in the jump host's sshd_config, or take restrict from your key in its authorized_keys"
	}
	return "check that the jump host resolves that name, and that sshd runs there on that port"
}
