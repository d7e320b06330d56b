package sshfwd

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// directStreamLocal is the channel type that connects to a Unix socket of the
// server's host (OpenSSH's PROTOCOL section 2.4).
const directStreamLocal = "direct-streamlocal@openssh.com"

// A DialUnixError says that the server did not connect to a socket.
type DialUnixError struct {
	Path string
	// Prohibited: the server does not allow such channels, so the attempt says
	// nothing of the socket. It is false where nothing listens at Path, or
	// where the account may not connect there. OpenSSH's sshd never sets it:
	// it gives both the same answer (server_input_channel_open in
	// serverloop.c).
	Prohibited bool
	// Unsupported: the server does not know the channel type, as old
	// dropbear.
	Unsupported bool
	// Message is the server's own text, not to be trusted; may be empty.
	Message string
}

func (e *DialUnixError) Error() string {
	switch {
	case e.Prohibited:
		return fmt.Sprintf("the server prohibits connections to its socket %q (it says %.200q)", e.Path, e.Message)
	case e.Unsupported:
		return fmt.Sprintf("the server cannot connect to its socket %q (it says %.200q)", e.Path, e.Message)
	}
	return fmt.Sprintf("nothing answers at the socket %q of the server (it says %.200q)", e.Path, e.Message)
}

// Hint says what to do.
func (e *DialUnixError) Hint() string {
	switch {
	case e.Prohibited:
		return "set AllowStreamLocalForwarding to yes or all in the server's sshd_config"
	case e.Unsupported:
		return "use a server that forwards Unix sockets, such as OpenSSH 6.7 or later"
	}
	return "check that a process listens there and that the account may connect to it"
}

// DialUnix connects to the Unix socket at path, absolute, on the server's
// host. ctx bounds the opening only. The error is a *DialUnixError where the
// server answered.
func (c *Client) DialUnix(ctx context.Context, path string) (Conn, error) {
	payload := ssh.Marshal(struct {
		Path      string
		Reserved0 string
		Reserved1 uint32
	}{Path: path})
	ch, reqs, err := c.openChannel(ctx, directStreamLocal, payload)
	var refused *ssh.OpenChannelError
	if errors.As(err, &refused) {
		return nil, &DialUnixError{
			Path:        path,
			Prohibited:  refused.Reason == ssh.Prohibited,
			Unsupported: refused.Reason == ssh.UnknownChannelType,
			Message:     refused.Message,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the socket %q of the server: %w", path, err)
	}
	return newChannelConn(ch, reqs), nil
}
