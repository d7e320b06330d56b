package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// directTCP is the channel type that connects the server's host to another
// (RFC 4254, 7.2).
const directTCP = "direct-tcpip"

// maxJumps bounds a chain of jump hosts. ssh has no bound, and never ends where
// each of two hosts is to be reached through the other.
const maxJumps = 16

// openJump connects to the last jump host as ssh does, which runs another ssh
// for it (ssh.c, "construct a ProxyCommand"): with its own configuration from
// the same file, the jump hosts before it as -J, and none of our other options.
// Where there is none before it, its own ProxyJump or ProxyCommand counts.
//
// Unlike ssh, BatchMode holds for the jump hosts too.
func (c *Config) openJump(ctx context.Context, prompter Prompter, log *slog.Logger, depth int) (*route, error) {
	options, err := c.jumpOptions()
	if err != nil {
		return nil, err
	}
	proxy := fmt.Sprintf("jump host %q", options.Destination)
	if depth >= maxJumps {
		return nil, &ConfigError{Problem: "too many jump hosts", Advice: "see with `ssh -G` whether two hosts are each reached through the other"}
	}
	hop, err := dialJump(ctx, options, c, prompter, log.With("jump", options.Destination), depth+1)
	if err != nil {
		return nil, &ProxyError{Proxy: proxy, Err: err}
	}
	conn, err := hop.dialThrough(ctx, c)
	if err != nil {
		_ = hop.Close()
		_ = hop.Wait()
		return nil, &ProxyError{Proxy: proxy, Err: err}
	}
	return &route{Conn: conn, proxy: proxy, finish: conn.finish}, nil
}

func dialJump(ctx context.Context, o Options, outer *Config, prompter Prompter, log *slog.Logger, depth int) (*Client, error) {
	c, err := Resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	if c.Hostname == outer.Hostname && c.Port == outer.Port && c.User == outer.User && c.ProxyJump == outer.ProxyJump {
		return nil, &ConfigError{Problem: "the jump host is the host itself", Advice: "set ProxyJump none for the jump host"}
	}
	for _, warning := range c.Warnings {
		log.Warn("ssh says", "text", warning)
	}
	c.Stderr, c.StateDir = outer.Stderr, outer.StateDir
	return dialHost(ctx, c, prompter, log, depth)
}

// jumpOptions is the command line of the ssh that ssh would run.
func (c *Config) jumpOptions() (Options, error) {
	before, last, _ := cutLast(c.ProxyJump, ",")
	user, host, port, ok := parseJumpHost(last)
	if !ok || !validHostname(host) || !validUser(user) {
		return Options{}, &ConfigError{
			Problem: fmt.Sprintf("bad jump host %q", last),
			Advice:  "write ProxyJump as [user@]host[:port], with commas between several",
		}
	}
	return Options{Destination: host, User: user, Port: port, JumpHosts: before, ConfigFile: c.ConfigFile, BatchMode: c.BatchMode}, nil
}

// cutLast cuts at the last separator; without one all of s is after.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}

// parseJumpHost reads [user@]host[:port], where an IPv6 address stands in
// brackets, and ssh://[user@]host[:port] (parse_user_host_port, parse_ssh_uri
// in OpenSSH's misc.c). The port is 0 if there is none.
func parseJumpHost(spec string) (user, host string, port int, ok bool) {
	spec, isURI := strings.CutPrefix(strings.TrimSpace(spec), "ssh://")
	if isURI {
		spec = strings.TrimSuffix(spec, "/")
	}
	user, rest, hasUser := cutLast(spec, "@")
	if hasUser && user == "" || strings.Contains(rest, "/") {
		return "", "", 0, false
	}
	text := ""
	if strings.HasPrefix(rest, "[") {
		host, text, ok = strings.Cut(rest[1:], "]")
		if text, hasPort := strings.CutPrefix(text, ":"); !ok || (text != "" && !hasPort) {
			return "", "", 0, false
		}
		text = strings.TrimPrefix(text, ":")
	} else {
		host, text, _ = strings.Cut(rest, ":")
	}
	if text != "" {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil || number == 0 {
			return "", "", 0, false
		}
		port = int(number)
	}
	return user, host, port, host != ""
}

// A jumpConn is a connection that the jump host makes for us. It owns the
// connection to the jump host: closing the one closes the other, which is also
// what ends reads and writes when the jump host no longer answers. There are no
// deadlines on it.
type jumpConn struct {
	*channelConn
	hop  *Client
	addr proxyAddr
}

// dialThrough has the jump host connect to the host of c, as ssh -W does.
func (c *Client) dialThrough(ctx context.Context, to *Config) (*jumpConn, error) {
	limited, cancel := context.WithTimeout(ctx, to.connectLimit())
	defer cancel()
	payload := ssh.Marshal(struct {
		Host           string
		Port           uint32
		Originator     string
		OriginatorPort uint32
	}{to.Hostname, uint32(to.Port), "127.0.0.1", 0})
	ch, reqs, err := c.openChannel(limited, directTCP, payload)
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused):
		return nil, &JumpError{Host: to.Hostname, Port: to.Port, Prohibited: refused.Reason == ssh.Prohibited, Message: refused.Message}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &DialError{Host: to.Hostname, Port: to.Port, Err: err}
	}
	addr := net.JoinHostPort(to.Hostname, strconv.Itoa(to.Port))
	return &jumpConn{newChannelConn(ch, reqs), c, proxyAddr(addr)}, nil
}

// Close ends both connections, dead or alive, and does not wait.
func (c *jumpConn) Close() error {
	_ = c.channelConn.Close()
	_ = c.hop.conn.Close()
	return nil
}

// finish returns when the connection to the jump host has ended, with the
// reason if that was the jump host's doing.
func (c *jumpConn) finish() error {
	<-c.done
	_ = c.hop.Close()
	_ = c.hop.Wait()
	c.hop.mu.Lock()
	defer c.hop.mu.Unlock()
	return c.hop.cause
}

func (c *jumpConn) LocalAddr() net.Addr  { return proxyAddr("") }
func (c *jumpConn) RemoteAddr() net.Addr { return c.addr }

func (c *jumpConn) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (c *jumpConn) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (c *jumpConn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// A JumpError says that the jump host did not connect to the next host.
type JumpError struct {
	Host string
	Port int
	// Prohibited: it does not want to. Else it could not.
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

// Hint says what to do.
func (e *JumpError) Hint() string {
	if e.Prohibited {
		return "set AllowTcpForwarding yes, and PermitOpen, in the jump host's sshd_config, or take restrict from your key in its authorized_keys"
	}
	return "check that the jump host resolves that name, and that sshd runs there on that port"
}
