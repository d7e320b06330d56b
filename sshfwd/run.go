package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Run runs command with the account's shell and without a terminal, and
// returns when it has ended and its output is written, or when ctx ends. The
// error is nil for status 0, an *ExitError for any other end that the server
// tells, ErrNoExitStatus where it tells none, a *RequestRefusedError where it
// refused to start the command. What a Write of stdout or stderr returned is
// joined to it.
//
// A nil stdin is empty; a nil stdout or stderr discards. Nothing is written
// after Run has returned. stdin is read by a goroutine that Run does not wait
// for, since a Read cannot be interrupted: it ends with the Read under way when
// the command ends. So give a stdin that ends, or that the caller closes.
//
// The first of stdin leaves a round trip after the command: sshd opens the
// channel's window when the command has started (session_set_fds in session.c).
// What has to be there sooner belongs into the command.
func (c *Client) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	if command == "" {
		return errors.New("run: no command")
	}
	exit, err := c.runSession(ctx, SessionRequest{
		Command: command,
		Stdin:   stdin,
		Stdout:  stdout,
		Stderr:  stderr,
		isRun:   true,
	})
	if err := errors.Join(exit.err(), err); err != nil {
		return fmt.Errorf("run %.40q: %w", command, err)
	}
	return nil
}
