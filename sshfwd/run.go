package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Run runs command with the account's shell and without a terminal, and returns when it has
// ended and its output is written, or when ctx ends; the command is then sent a SIGTERM.
// The error is nil for status 0, a *link.ExitError for any other end that the server
// reports, link.ErrNoExitStatus if it reports none, and a *RequestRefusedError if it refused
// to start the command. Errors of writing stdout or stderr are joined to it.
//
// A nil stdin is empty; a nil stdout or stderr discards. Nothing is written after Run has
// returned. stdin is read by a goroutine that Run does not wait for, since a Read cannot be
// interrupted: it ends after the Read in progress when the command ends. So stdin should
// end, or be closed by the caller.
//
// The first bytes of stdin leave a round trip after the command: sshd opens the channel's
// window when the command has started (session_set_fds in session.c). What is needed sooner
// must be part of the command.
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
