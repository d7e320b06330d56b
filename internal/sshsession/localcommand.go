package sshsession

import (
	"context"

	"gpg-bridge/internal/proc"
	"gpg-bridge/internal/signals"
	"gpg-bridge/internal/ui"
)

// runLocalCommand runs LocalCommand, before the session begins, and waits for its end, as ssh
// does (ssh_session2 in ssh.c). How it ends does not
// matter. An error says that it cannot be run by its tokens, or that a signal has ended the
// wait, of which ssh dies; the command may have had it, too, and goes on if not.
func (r *run) runLocalCommand(ctx context.Context) error {
	if r.master != nil { // which has run it
		return nil
	}
	command, err := r.config.LocalCommandLine()
	if err != nil {
		return ui.Exit(ui.ExitConnection, err)
	}
	if command == "" {
		return nil
	}
	r.service.Log.Debug("running", "localcommand", command)
	cmd := proc.LocalCommand(command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.service.UI.Stdin, r.service.UI.Stdout, r.service.UI.Stderr
	if err := cmd.Start(); err != nil {
		r.service.UI.Warn(&localCommandError{err})
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command, or with this process
	select {
	case err := <-ended:
		proc.AwaitSignal(ctx, err)
	case <-ctx.Done():
	}
	_, end := signals.Ending(ctx, signals.Beginning)
	return end
}

// A localCommandError says that LocalCommand could not be started.
type localCommandError struct{ why error }

func (e *localCommandError) Error() string { return "cannot run LocalCommand: " + e.why.Error() }
func (e *localCommandError) Unwrap() error { return e.why }

// Hint says what to do.
func (e *localCommandError) Hint() string { return "SHELL names the program that runs it" }
