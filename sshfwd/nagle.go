package sshfwd

import (
	"context"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// DisableServerNagle makes an OpenSSH server set TCP_NODELAY on its side of the
// connection. Call it for a connection that carries forwards and no session,
// once it is authenticated and off the critical path; a session has the same
// effect and makes it needless.
//
// sshd up to 10.0 leaves Nagle's algorithm on until the first session starts:
// do_exec_pty and do_exec_no_pty in session.c are what calls set_nodelay there
// (10.1 sets it from the start). On a connection that only forwards, each
// answer of more than one packet then waits for our delayed ACK, some 40 ms.
// So a session channel is opened, the sftp subsystem is requested on it and
// the channel is closed: sftp, because it runs neither the account's shell nor
// its rc files where sshd has internal-sftp, and no command of ours anywhere.
//
// Skip it for an account with a forced command: the subsystem request would
// run that. It does nothing where the server's version says that there is no
// need. It returns when the channel is closed, or ctx ends. An error means that
// the server may still delay, and no more.
func (c *Client) DisableServerNagle(ctx context.Context) error {
	if !delaysUntilSession(string(c.conn.ServerVersion())) {
		return nil
	}
	s, err := c.openSession(ctx, SessionRequest{isRun: true})
	if err != nil {
		return err
	}
	defer s.end()
	err = s.request(ctx, "subsystem", ssh.Marshal(struct{ Name string }{"sftp"}))
	s.closeAndWait(ctx)
	return err
}

// closeAndWait closes the channel and waits for the server's CLOSE, or ctx.
func (s *session) closeAndWait(ctx context.Context) {
	go func() { _ = s.ch.Close() }()
	select {
	case <-s.over:
	case <-ctx.Done():
	}
}

// delaysUntilSession tells from a server's identification string (RFC 4253
// section 4.2) whether it is an OpenSSH that leaves Nagle's algorithm on:
// "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3", "SSH-2.0-OpenSSH_for_Windows_9.5".
func delaysUntilSession(version string) bool {
	software, found := strings.CutPrefix(version, "SSH-2.0-OpenSSH")
	if !found {
		return false
	}
	software, _, _ = strings.Cut(software, " ")
	number := software[strings.LastIndexByte(software, '_')+1:]
	majorText, rest, _ := strings.Cut(number, ".")
	major, err := strconv.Atoi(majorText)
	if err != nil {
		return true
	}
	minor := 0
	if len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		minor = int(rest[0] - '0')
	}
	return major < 10 || major == 10 && minor < 1
}
