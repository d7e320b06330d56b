package sshsession

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/ports"
)

// openForwards sets up the user's own forwards. gpgSocket is the bridge's on the host, or "".
// A failure is a warning, or an *ui.ExitError with ExitOnForwardFailure.
func (r *run) openForwards(ctx context.Context, gpgSocket string) error {
	if r.master != nil { // which has them
		return nil
	}
	specs := r.config.Forwards
	specs.Remote = slices.DeleteFunc(slices.Clone(specs.Remote), func(spec config.ForwardSpec) bool {
		same := gpgSocket != "" && spec.Listen.Path != "" && path.Clean(spec.Listen.Path) == path.Clean(gpgSocket)
		if same {
			r.service.UI.Warn(&forwardedTwiceError{spec.Listen.Path})
		}
		return same
	})
	failed := ports.Open(ctx, r.conn.Client, specs, ports.Events{
		Log:    r.service.Log,
		Failed: r.service.UI.Warn,
		Allocated: func(spec config.ForwardSpec, port int) {
			r.say(usertext.Info, "Allocated port %d for remote forward to %s", port, usertext.Printable(spec.Target()))
		},
	})
	for i, err := range failed {
		if r.config.ExitOnForwardFailure && i == len(failed)-1 {
			if one, ok := errors.AsType[*ports.FailedError](err); ok {
				one.Fatal = true
			}
			return ui.Exit(ui.ExitConnection, err)
		}
		r.service.UI.Warn(err)
	}
	return nil
}

// A forwardedTwiceError says that the user's configuration forwards the very
// socket that the bridge serves.
type forwardedTwiceError struct{ path string }

func (e *forwardedTwiceError) Error() string {
	return fmt.Sprintf("your ssh_config already forwards %q; the bridge serves it instead", e.path)
}

// Hint says what to do.
func (e *forwardedTwiceError) Hint() string {
	return "take this RemoteForward out of ssh_config: gpg-bridge does its work"
}
