package agentside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"gpg-bridge/internal/usertext"
)

// errDisabled says that the agent runs, but listens at no socket that we may use.
var errDisabled = usertext.WithHint(
	"gpg-agent was started, but it does not listen",
	"remove extra-socket from gpg-agent.conf, then restart it: gpgconf --kill gpg-agent",
)

// startAndDial starts the agent, after try has found none, and tries again. If
// several sessions find none at the same time, one of them starts it; the others wait
// for that and find it running. They wait no longer than one dial may take, since
// the starter's ctx bounds the start.
func (l *Locator) startAndDial(ctx context.Context, try func(context.Context) (net.Conn, error)) (net.Conn, error) {
	l.launching.Lock()
	defer l.launching.Unlock()
	conn, err := try(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); !gone {
		return conn, err
	}
	// gpgconf returns once the agent can be connected to.
	if err := l.launch(ctx); err != nil {
		return nil, &StartError{err}
	}
	conn, err = try(ctx)
	if _, gone := errors.AsType[*NoAgentError](err); gone {
		return nil, &StartError{errDisabled}
	}
	return conn, err
}

// launch starts the agent. gpgconf cannot do that if the GnuPG home does not exist. In
// that case launch makes the default home, as gpg does when it is first used, but not one
// that GNUPGHOME names. Nor does it make one in another user's directory, as for root with
// that user's HOME: the owner could not use a directory that belongs to root.
func (l *Locator) launch(ctx context.Context) error {
	_, err := l.gpgconf(ctx, "--launch", "gpg-agent")
	if err == nil {
		return nil
	}
	home, homeErr := l.HomeDir(ctx)
	if homeErr != nil {
		return err
	}
	if _, gone := os.Stat(home); !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	if l.getenv("GNUPGHOME") != "" {
		return &NoHomeError{home}
	}
	above, missing := os.Stat(filepath.Dir(home))
	if missing != nil {
		return missing
	}
	if !isOwn(above) {
		return &ForeignHomeError{home}
	}
	if made := os.Mkdir(home, 0o700); made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	_, err = l.gpgconf(ctx, "--launch", "gpg-agent")
	return err
}

// A NoHomeError says that GNUPGHOME names a directory that does not exist.
type NoHomeError struct{ Path string }

func (e *NoHomeError) Error() string {
	return fmt.Sprintf("GNUPGHOME is %q, which does not exist", e.Path)
}

// Hint says what to do.
func (e *NoHomeError) Hint() string {
	return "make that directory, with mode 0700, or correct GNUPGHOME"
}

// A ForeignHomeError says that the GnuPG home does not exist and would be in another user's
// directory.
type ForeignHomeError struct{ Path string }

func (e *ForeignHomeError) Error() string {
	return fmt.Sprintf("%q does not exist, and would be in another user's directory", e.Path)
}

// Hint says what to do.
func (e *ForeignHomeError) Hint() string {
	return "run gpg-bridge as that user, or set HOME to your own directory, as sudo -H does"
}

// A StartError says that no agent runs and none could be started.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

// Hint returns the cause's hint, if it has one.
func (e *StartError) Hint() string {
	if hint := usertext.Hint(e.Err); hint != "" {
		return hint
	}
	return "start it yourself and see what it says: gpgconf --launch gpg-agent"
}
