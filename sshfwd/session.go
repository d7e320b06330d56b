package sshfwd

import (
	"context"
	"errors"
	"io"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/terminal"
	"gpg-bridge/sshfwd/config"
)

// A SessionRequest is a shell or a command, and what it is connected to.
type SessionRequest struct {
	Command string // run by the account's shell; empty is a login shell
	// Subsystem means that Command is the name of a subsystem, such as "sftp" (RFC 4254
	// section 6.5), which no shell runs.
	Subsystem bool
	PTY       *terminal.PTY // nil for no terminal
	Env       []config.EnvVar
	// ForwardAgent lets the session use the ssh-agent, after Client.ForwardAgent.
	// Whether the server grants it is not checked.
	ForwardAgent bool

	// Stdin is read until it ends or fails; the remote stdin then ends. With NoStdin,
	// or a nil Stdin, it ends at once.
	Stdin   io.Reader
	NoStdin bool
	// Escape, if not nil, handles escape sequences in Stdin, which are not sent.
	Escape *Escape
	// Stdout and Stderr may be nil, which discards. With a PTY everything
	// arrives on Stdout. A Write must not block for ever: Session waits for it.
	Stdout, Stderr io.Writer

	// Resize receives the terminal's size whenever it changes.
	Resize <-chan terminal.WindowSize
	// Started, if not nil, is called when the server has started the shell or
	// command, before Stdin is read and output is written: the moment for raw mode.
	Started func()
	// PTYRefused, if not nil, is called instead of Started if the server refuses
	// the terminal, before anything runs. The shell or command is then started
	// without one, unless PTYRefused returns an error, which ends the session.
	PTYRefused func() error

	isRun bool // for Run: the channel opened ahead is not for it, and it is sent SIGTERM
}

// Session runs the request and returns the status that ssh would exit with: that of the
// remote command, or ExitConnectionLost with an error that says why: a *link.ExitError for
// a signal, link.ErrNoExitStatus, a *link.LostError, a *RequestRefusedError,
// ErrDisconnected, or the cause of ctx. A failure to write Stdout or Stderr is returned
// together with the status; the remote command then gets SIGPIPE from an OpenSSH server.
//
// Opening the channel takes one round trip; pty-req, env and shell or exec are then sent
// together. To learn that the server refuses the pty, with PTYRefused, takes another one,
// since x/crypto sends no second request on a channel while one is unanswered, and the
// answer to shell or exec is needed as well. AskPTYAhead avoids that.
//
// Stdin is read by a goroutine that Session does not wait for, since a Read cannot be
// interrupted, unless Stdin can be closed, as Terminal.Input. It ends after the Read in
// progress.
func (c *Client) Session(ctx context.Context, req SessionRequest) (status int, err error) {
	exit, err := c.runSession(ctx, req)
	if exit.signal != "" {
		err = errors.Join(exit.err(), err)
	}
	return exit.code(), err
}

// runSession returns how the remote command ended, and what else went wrong; the error is
// never nil if the exit is not known.
func (c *Client) runSession(ctx context.Context, req SessionRequest) (exit, error) {
	s, err := c.openSession(ctx, req)
	if err != nil {
		return exit{}, err
	}
	defer s.end()
	if !req.isRun {
		c.setInteractive(req.PTY != nil)
	}
	stop := context.AfterFunc(ctx, func() {
		if req.isRun {
			s.terminate()
		}
		_ = s.ch.Close()
	})
	defer stop()
	if !req.isRun {
		c.use()
	}
	if err := s.startHeld(ctx, req); err != nil {
		return exit{}, c.explained(ctx, err)
	}
	c.wire.SessionStarted()
	go s.copyInput(s.input(req))
	go s.sendChanges(req.Resize)
	exit, err := s.wait(ctx)
	return exit, c.explained(ctx, err)
}

// explained adds to link.ErrNoExitStatus why the connection was lost, if it was.
func (c *Client) explained(ctx context.Context, err error) error {
	if errors.Is(err, link.ErrNoExitStatus) {
		return errors.Join(c.lostWith(ctx), err)
	}
	return err
}

// lostWith returns why the connection was lost, or nil if the server still answers: then
// only the channel has ended.
func (c *Client) lostWith(ctx context.Context) error {
	lost := make(chan error, 1)
	go func() { // ends with the answer or the connection
		if c.askAlive() == nil {
			lost <- nil
			return
		}
		lost <- c.Wait()
	}()
	select {
	case err := <-lost:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
