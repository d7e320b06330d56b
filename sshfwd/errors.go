package sshfwd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/wire"
)

// ErrNoAnswer says that the server did not answer in time.
var ErrNoAnswer = errors.New("no answer from the server")

// A DialError says that there is no TCP connection to the host.
type DialError struct {
	Host string
	Port int
	Err  error
}

func (e *DialError) Error() string {
	var dns *net.DNSError
	addr := net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
	switch {
	case errors.As(e.Err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("cannot resolve the host name %q", e.Host)
	case errors.As(e.Err, &dns):
		return fmt.Sprintf("cannot resolve the host name %q: %s", e.Host, dns.Err)
	case e.refused():
		return fmt.Sprintf("cannot connect to %s: connection refused", addr)
	case os.IsTimeout(e.Err):
		return fmt.Sprintf("cannot connect to %s: timed out", addr)
	}
	return fmt.Sprintf("cannot connect to %s: %v", addr, usertext.RootCause(e.Err))
}

func (e *DialError) Unwrap() error { return e.Err }

func (e *DialError) refused() bool { return errors.Is(e.Err, syscall.ECONNREFUSED) }

// Hint says what to do.
func (e *DialError) Hint() string {
	var dns *net.DNSError
	switch {
	case errors.As(e.Err, &dns):
		return "check the name, and HostName in ssh_config; `ssh -G HOST` shows what it becomes"
	case e.refused():
		return fmt.Sprintf("check that sshd runs on the host and listens on port %d", e.Port)
	}
	return "check the network, the port and any firewall between"
}

// A HandshakeError says that there is a TCP connection to the host, but no SSH connection
// over it.
type HandshakeError struct {
	Host string
	Port int
	Err  error // ErrNoAnswer if the time was up; may be an *AlgorithmError
}

func (e *HandshakeError) Error() string {
	addr := net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
	return fmt.Sprintf("no SSH connection to %s: %s", addr, usertext.Quoted(e.Err.Error()))
}

func (e *HandshakeError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *HandshakeError) Hint() string {
	if errors.Is(e.Err, ErrNoAnswer) {
		return "something accepts connections there but does not speak SSH in time; check the port, or raise ConnectTimeout"
	}
	if hint := usertext.Hint(e.Err); hint != "" {
		return hint
	}
	return "try `ssh -v` with the same arguments: it shows at which step the two sides part"
}

// lost returns a *link.LostError for what ended the connection: ErrNoAnswer after missed
// keepalives, io.EOF if the server closed it, wire.ErrHeldTooMuch if it sent more
// than we hold.
func lost(err error) *link.LostError {
	if known, ok := err.(*link.LostError); ok { // not errors.As: an inner one is a jump host's
		return known
	}
	lost := &link.LostError{Err: err}
	if errors.Is(err, wire.ErrHeldTooMuch) {
		lost.Advice = usertext.Hint(wire.ErrHeldTooMuch)
	}
	return lost
}
