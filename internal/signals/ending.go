package signals

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"gpg-bridge/internal/ui"
)

// A Phase is what a run is busy with when a signal ends it.
type Phase int

const (
	// Beginning is everything before Session and Forwarding: reading ssh_config, connecting,
	// questions to the user, logging in and LocalCommand.
	Beginning Phase = iota
	// Session is a shell, a command or a subsystem on the host.
	Session
	// Forwarding is a connection without a session (ssh -N).
	Forwarding
)

// Ending returns how ssh ends by the signal that has ended ctx, and the signal, which is nil if
// none has. This is the one place for that rule, which is how OpenSSH 9.2 and 10.5 behave:
//
//   - In Beginning, ssh catches no signal and dies of it: the error is a *DiedError. A Ctrl-C or
//     Ctrl-\ at a question is such a signal (readpassphrase.c).
//   - In Session and Forwarding, it disconnects and exits with 255 (client_loop in clientloop.c).
//   - But SIGTERM in Forwarding is the way to end it: the error is nil.
//
// What has to be tidied up on the host is the caller's, in each of them, before the process
// ends.
func Ending(ctx context.Context, phase Phase) (os.Signal, error) {
	by, ok := errors.AsType[*Error](context.Cause(ctx))
	switch {
	case !ok:
		return nil, nil
	case phase == Beginning:
		return by.Signal, ui.Exit(ui.ExitConnection, &DiedError{by.Signal})
	case phase == Forwarding && by.Signal == syscall.SIGTERM:
		return by.Signal, nil
	}
	return by.Signal, ui.Exit(ui.ExitConnection, nil)
}

// A DiedError says that, after tidying up, the process is to end by a signal as if it had not
// caught it. Only then does a shell end a loop in which it runs the program.
type DiedError struct{ Signal os.Signal }

func (e *DiedError) Error() string { return fmt.Sprintf("died of a signal: %v", e.Signal) }
