package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// A client speaks Assuan as a gpg on the host does.
type client struct {
	conn net.Conn
	in   *bufio.Reader
}

// dial connects and waits for the greeting. The whole conversation must be over within the
// limit.
func dial(socket string, limit time.Duration) (*client, error) {
	conn, err := dialAsGPG(socket)
	if err != nil {
		return nil, err
	}
	c := &client{conn, bufio.NewReader(conn)}
	err = conn.SetDeadline(time.Now().Add(limit))
	if err == nil {
		err = c.expect("OK Pleased to meet you")
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greeting: %w", err)
	}
	return c, nil
}

// expect reads one line, which must begin with prefix.
func (c *client) expect(prefix string) error {
	line, err := c.in.ReadString('\n')
	switch {
	case err != nil:
		return err
	case !strings.HasPrefix(line, prefix):
		return fmt.Errorf("%q instead of %q", line, prefix)
	}
	return nil
}

// ask sends a command, whose answer must be exactly these lines.
func (c *client) ask(command string, lines ...string) error {
	if _, err := io.WriteString(c.conn, command+"\n"); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for _, line := range lines {
		if err := c.expect(line); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

// bye ends the conversation, and waits until the other side has, too.
func (c *client) bye() error {
	if err := c.ask("BYE", "OK closing connection\n"); err != nil {
		return err
	}
	if extra, err := c.in.ReadString('\n'); !errors.Is(err, io.EOF) || extra != "" {
		return fmt.Errorf("after BYE: %q, %v", extra, err)
	}
	return nil
}

// visit is one client of a crowd, which stays connected for stay.
func (l *lab) visit(limit, stay time.Duration) error {
	c, err := dial(l.socket, limit)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	if err := c.ask("GETINFO version", "D "+l.version+"\n", "OK\n"); err != nil {
		return err
	}
	time.Sleep(stay)
	if err := c.ask("HAVEKEY "+l.key.Keygrip, "OK\n"); err != nil {
		return err
	}
	return c.bye()
}

// askVersion asks an agent directly.
func askVersion(socket string) (string, error) {
	c, err := dial(socket, readyTimeout)
	if err != nil {
		return "", err
	}
	defer c.conn.Close()
	if _, err := io.WriteString(c.conn, "GETINFO version\n"); err != nil {
		return "", err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "D ")
	if !ok {
		return "", fmt.Errorf("the agent says %q", line)
	}
	return version, nil
}
