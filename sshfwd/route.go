package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gpg-bridge/internal/usertext"
)

// A route is how the bytes get to the host's sshd: a TCP connection, a channel
// through a jump host, or a ProxyCommand. Close ends all of it and does not
// wait; the Client that runs over it owns it, and waits for finish.
type route struct {
	net.Conn
	// proxy names the jump host or ProxyCommand, for messages; "" for a direct
	// connection.
	proxy string
	// finish waits until the jump host's connection or the ProxyCommand has ended, which
	// it does after Close. It returns why that ended by itself, if it did and that is
	// known. It is nil for a direct connection.
	finish func() error
}

// wait calls finish if there is one. r may be nil.
func (r *route) wait() error {
	if r == nil || r.finish == nil {
		return nil
	}
	return r.finish()
}

// explain puts an error of a handshake through a proxy into a *ProxyError, or instead of it
// the cause that the proxy itself gave.
func (r *route) explain(err, cause error) error {
	var handshake *HandshakeError
	if r.proxy == "" || !errors.As(err, &handshake) {
		return err
	}
	if cause != nil {
		err = cause
	}
	return &ProxyError{Proxy: r.proxy, Err: err, IsWay: cause != nil}
}

// openRoute connects as ProxyJump or ProxyCommand say, or directly.
func (d *dialer) openRoute(ctx context.Context) (*route, error) {
	c := d.config
	switch {
	case c.ProxyJump != "":
		return d.openJump(ctx)
	case c.ProxyCommand != "":
		return d.openProxyCommand(ctx)
	}
	conn, err := d.dialTCP(ctx)
	if err != nil {
		return nil, &DialError{Host: c.Hostname, Port: c.Port, Err: err}
	}
	d.log.Debug("connected", "host", c.Hostname, "addr", conn.RemoteAddr().String())
	return &route{Conn: conn}, nil
}

// proxied is what connections through a jump host or a ProxyCommand have in common: the
// remote address is the host's, as far as it is known here, and there are no deadlines.
type proxied struct{ host string }

func (p proxied) LocalAddr() net.Addr  { return proxyAddr("") }
func (p proxied) RemoteAddr() net.Addr { return proxyAddr(p.host) }

func (proxied) SetDeadline(time.Time) error      { return errors.ErrUnsupported }
func (proxied) SetReadDeadline(time.Time) error  { return errors.ErrUnsupported }
func (proxied) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// proxyAddr is the address of a host to which a jump host or a ProxyCommand connects.
type proxyAddr string

func (proxyAddr) Network() string  { return "proxy" }
func (a proxyAddr) String() string { return string(a) }

// A ProxyError says that a proxy failed, or that a connection through it did.
type ProxyError struct {
	Proxy string // "jump host \"bastion\"", "ProxyCommand \"nc web 22\""
	Err   error
	IsWay bool // there is no connection through it
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("through %s: %s", e.Proxy, usertext.Line(e.Err.Error()))
}

func (e *ProxyError) Unwrap() error { return e.Err }

// SSHSays is usertext.Spoken: what the ssh that is the proxy says, and then the one whose
// proxy it is.
func (e *ProxyError) SSHSays() (words []usertext.Message, complete bool) {
	words, complete = usertext.SSHSays(e.Err)
	if e.IsWay {
		end := &HandshakeError{Err: io.EOF, Peer: peerWords(nil), IsSilent: true}
		ended, _ := end.SSHSays()
		words = append(words, ended...)
	}
	return words, complete
}

// Hint says what to do: the inner error's hint, if it has one.
func (e *ProxyError) Hint() string {
	if hint := usertext.Hint(e.Err); hint != "" {
		return hint
	}
	return "see that it works by itself, and that ssh_config names it right"
}
