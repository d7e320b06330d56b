package sshfwd

import (
	"log/slog"

	"golang.org/x/crypto/ssh"
)

// A Client is one authenticated SSH connection. Its methods may be called from
// any goroutine. Close ends it and everything that was opened through it.
type Client struct {
	conn *ssh.Client
	log  *slog.Logger
}

// newClient wraps an authenticated connection; Client owns conn from here on.
func newClient(conn *ssh.Client, log *slog.Logger) *Client {
	return &Client{conn: conn, log: log}
}

// Close ends the connection. A second Close is a no-op.
func (c *Client) Close() error { return c.conn.Close() }

// Wait returns when the connection has ended, with the cause if there is one.
func (c *Client) Wait() error { return c.conn.Wait() }
