package sshfwd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
)

var (
	// ErrNoAnswer: the server did not answer within the time it had.
	ErrNoAnswer = errors.New("no answer from the server")
	// ErrNoPrompt: something had to be asked, and BatchMode or a missing
	// Prompter forbids it.
	ErrNoPrompt = errors.New("asking is not possible")
	// ErrPasswordExpired: the server took the password and wants a new one
	// before it lets the user in (RFC 4252, 8).
	ErrPasswordExpired = errors.New("the server wants the password to be changed first")
)

// ConfigError: the destination could not be resolved into something to connect
// to. Problem is one line; Advice says what to do.
type ConfigError struct {
	Problem string
	Advice  string
	Err     error // may be nil
}

func (e *ConfigError) Error() string {
	if e.Err == nil {
		return e.Problem
	}
	return e.Problem + ": " + e.Err.Error()
}

func (e *ConfigError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ConfigError) Hint() string { return e.Advice }

// UnsupportedError: the configuration asks for something that cannot be left
// out without connecting elsewhere, or more trustfully, than ssh would.
type UnsupportedError struct{ Option, Value string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not supported (it is set to %q)", e.Option, e.Value)
}

// Hint says what to do.
func (e *UnsupportedError) Hint() string {
	return fmt.Sprintf("override it for this host, such as with -o %s=none, if the host can be reached without", e.Option)
}

// DialError: no TCP connection to the host.
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
	return fmt.Sprintf("cannot connect to %s: %v", addr, rootCause(e.Err))
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

// rootCause is the innermost error: the system's own words, without the
// addresses that net puts around them.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// HandshakeError: a TCP connection, but no SSH connection over it.
type HandshakeError struct {
	Host string
	Port int
	Err  error // ErrNoAnswer when the time was up
}

func (e *HandshakeError) Error() string {
	addr := net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
	return fmt.Sprintf("no SSH connection to %s: %s", addr, quoted(e.Err.Error()))
}

func (e *HandshakeError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *HandshakeError) Hint() string {
	if errors.Is(e.Err, ErrNoAnswer) {
		return "something accepts connections there but does not speak SSH in time; check the port, or raise ConnectTimeout"
	}
	return "try `ssh -v` with the same arguments: it shows at which step the two sides part"
}

// manyKeys is sshd's default of MaxAuthTries less the first try, which names no
// method.
const manyKeys = 5

// AuthError: the server let none of our ways to log in succeed.
type AuthError struct {
	User    string
	Host    string
	Methods []string // what the server would still have accepted (RFC 4252)
	Tried   []string // what was tried, for the user: "key /home/me/.ssh/id_rsa"
	Err     error    // may be nil
	// Unusable are keys that could not be tried, or that could not sign, each
	// with the reason.
	Unusable []string
}

func (e *AuthError) Error() string {
	text := fmt.Sprintf("%s@%s: permission denied (%s)", e.User, e.Host, quoted(strings.Join(e.Methods, ",")))
	if e.Err != nil {
		text += ": " + quoted(e.Err.Error())
	}
	return text
}

func (e *AuthError) Unwrap() error { return e.Err }

// Hint says what was tried and what to do.
func (e *AuthError) Hint() string {
	if errors.Is(e.Err, ErrNoPrompt) {
		return "log in once without BatchMode, or add the key to your ssh-agent (ssh-add)"
	}
	var hinted interface {
		error
		Hint() string
	}
	if errors.As(e.Err, &hinted) {
		return hinted.Hint()
	}
	if errors.Is(e.Err, ErrPasswordExpired) {
		return "log in with `ssh` once, which asks for the new password"
	}
	if len(e.Unusable) > 0 {
		return "could not use " + strings.Join(e.Unusable, ", ")
	}
	if len(e.Tried) == 0 {
		return "no key or password could be offered: check IdentityFile, and `ssh-add -l`"
	}
	if len(e.Tried) >= manyKeys {
		return fmt.Sprintf("the server may not have let %d keys be tried; name the right one with -i, and set IdentitiesOnly for this host", len(e.Tried))
	}
	return "tried " + strings.Join(e.Tried, ", ") + "; name the right key with -i, or add it to the host's authorized_keys"
}

// LostError: an established connection ended without Close. Err is ErrNoAnswer
// after missed keepalives, io.EOF if the server closed it, ErrHeldTooMuch if it
// sent more than could be held.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	if e.Err == nil {
		return "connection lost"
	}
	return "connection lost: " + quoted(e.Err.Error())
}

func (e *LostError) Unwrap() error { return e.Err }

// ConnectionLost is true. It tells callers that do not know this package.
func (e *LostError) ConnectionLost() bool { return true }

// Hint says what to do.
func (e *LostError) Hint() string {
	if errors.Is(e.Err, ErrHeldTooMuch) {
		return new(heldTooMuchError).Hint()
	}
	return "check the network and the host, then connect again"
}
