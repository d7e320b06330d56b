package agentside

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/usertext"
)

var errWrongEcho = usertext.WithHint(
	"whoever listens does not know the secret of the agent's socket file",
	"restart the agent: gpgconf --kill gpg-agent, then gpgconf --launch gpg-agent",
)

// Authenticate sends the agent what the socket's kind asks for, on a connection
// that Dial returned; for a Unix socket that is nothing. It waits for an answer
// only at a Cygwin socket. The caller sets the connection's deadline.
//
// An agent that gets a wrong nonce closes the connection without an answer. At a
// native socket (libassuan's _assuan_sock_check_nonce) this is noticed only when
// there is no greeting.
func (e *Endpoint) Authenticate(conn net.Conn) error {
	c, ok := conn.(*agentConn)
	if !ok {
		return errors.New("authenticate: the connection is not one of Dial's")
	}
	switch c.file.Kind {
	case assuan.SocketNative:
		return c.sendNonce()
	case assuan.SocketCygwin:
		return c.handshake()
	}
	return nil
}

func (c *agentConn) sendNonce() error {
	if _, err := c.Write(c.file.Nonce[:]); err != nil {
		return fmt.Errorf("send the nonce to the agent: %w", err)
	}
	return nil
}

// handshake is the client's half of a Cygwin socket's handshake; see
// assuan.CygwinCredentials.
func (c *agentConn) handshake() error {
	if err := c.sendNonce(); err != nil {
		return err
	}
	var echo [assuan.NonceSize]byte
	if _, err := io.ReadFull(c, echo[:]); err != nil {
		return fmt.Errorf("handshake with the agent: %w", err)
	}
	if subtle.ConstantTimeCompare(echo[:], c.file.Nonce[:]) != 1 {
		return errWrongEcho
	}
	mine := ownCredentials().Bytes()
	if _, err := c.Write(mine[:]); err != nil {
		return fmt.Errorf("handshake with the agent: %w", err)
	}
	var theirs [assuan.CygwinCredentialsSize]byte
	if _, err := io.ReadFull(c, theirs[:]); err != nil {
		return fmt.Errorf("handshake with the agent: %w", err)
	}
	return nil
}

// ownCredentials returns this process's. On Windows, where there are no such numbers
// (Cygwin's are its own), the user and group are 0; no server looks at them.
func ownCredentials() assuan.CygwinCredentials {
	return assuan.CygwinCredentials{
		PID: int32(os.Getpid()),
		UID: uint32(max(os.Getuid(), 0)),
		GID: uint32(max(os.Getgid(), 0)),
	}
}
