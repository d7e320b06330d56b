package sshfwd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
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

// SSHSays is usertext.Spoken (resolve_host in ssh.c, ssh_connect_direct in sshconnect.c).
func (e *DialError) SSHSays() (words []usertext.Message, complete bool) {
	var dns *net.DNSError
	host := usertext.Line(e.Host)
	switch {
	case errors.As(e.Err, &dns) && dns.IsNotFound:
		return oneLine(usertext.Error, "ssh: Could not resolve hostname %s: Name or service not known", host), true
	case errors.As(e.Err, &dns):
		return oneLine(usertext.Error, "ssh: Could not resolve hostname %s: Temporary failure in name resolution", host), false
	}
	return oneLine(usertext.Error, "ssh: connect to host %s port %d: %s", host, e.Port, usertext.SystemWords(e.Err)), true
}

func oneLine(level usertext.Level, format string, args ...any) []usertext.Message {
	return []usertext.Message{{Level: level, Text: fmt.Sprintf(format, args...)}}
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
// over it: it may also have ended while we logged in.
type HandshakeError struct {
	Host string
	Port int
	Err  error // ErrNoAnswer if the time was up; may be an *AlgorithmError

	Peer     string // in ssh's words: "192.0.2.1 port 22", or "UNKNOWN port 65535" behind a proxy
	IsSilent bool   // the server has sent nothing
}

func (e *HandshakeError) Error() string {
	addr := net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
	return fmt.Sprintf("no SSH connection to %s: %s", addr, usertext.Quoted(e.Err.Error()))
}

func (e *HandshakeError) Unwrap() error { return e.Err }

// SSHSays is usertext.Spoken (kex_exchange_identification in kex.c, and sshpkt_vfatal in
// packet.c, which says the last line by logdie, at level INFO).
func (e *HandshakeError) SSHSays() (words []usertext.Message, complete bool) {
	var algorithm *AlgorithmError
	switch {
	case errors.As(e.Err, &algorithm):
		return oneLine(usertext.Info, "Unable to negotiate with %s: no matching %s found. Their offer: %s",
			e.Peer, algorithm.kind(), usertext.Line(strings.Join(algorithm.Offered, ","))), true
	case errors.Is(e.Err, ErrNoAnswer):
		return e.endedWords("Connection timed out during banner exchange", "Connection to "+e.Peer+" timed out"), true
	case errors.Is(e.Err, syscall.ECONNRESET):
		return e.endedWords("kex_exchange_identification: read: Connection reset by peer", "Connection reset by "+e.Peer), true
	case errors.Is(e.Err, io.EOF):
		return e.endedWords("kex_exchange_identification: Connection closed by remote host", "Connection closed by "+e.Peer), true
	}
	return nil, false
}

// endedWords are two lines, the first only if the connection has ended before the server's
// identification.
func (e *HandshakeError) endedWords(silent, ended string) []usertext.Message {
	words := oneLine(usertext.Info, "%s", ended)
	if e.IsSilent {
		words = append(oneLine(usertext.Error, "%s", silent), words...)
	}
	return words
}

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
