package mux

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"gpg-bridge/internal/link"
)

// IsShared reports whether an ssh of the user's shares its connection at controlPath: it answers.
func IsShared(ctx context.Context, controlPath string) bool {
	if info, err := os.Lstat(controlPath); err != nil || info.Mode()&fs.ModeSocket == 0 {
		return false
	}
	l, err := Hold(ctx, controlPath)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// A Lease keeps a master from ending for want of use (ControlPersist in ssh_config(5)), since an
// open control connection counts as a session (channel_still_open in OpenSSH's channels.c).
type Lease struct{ control *control }

// Hold takes a Lease, which the caller closes. The error is ErrNoMaster if there is no master.
func Hold(ctx context.Context, controlPath string) (*Lease, error) {
	c, err := dialControl(ctx, controlPath)
	if err != nil {
		return nil, err
	}
	if _, err := c.alive(ctx); err != nil {
		c.close()
		return nil, err
	}
	return &Lease{c}, nil
}

// Close gives the Lease back. A second Close is a no-op.
func (l *Lease) Close() error {
	l.control.close()
	return nil
}

// Retire has the master give up its control socket, and end when the last session and the last
// forwarded connection has ended (client_stop_mux in OpenSSH's clientloop.c), as `ssh -O stop`
// does. It is no error if there is no master.
func Retire(ctx context.Context, controlPath string) error {
	return tell(ctx, controlPath, "stop sharing its connection", askStopListening)
}

// Terminate ends the master with all its connections, as `ssh -O exit` does. It is no error if
// there is no master.
func Terminate(ctx context.Context, controlPath string) error {
	return tell(ctx, controlPath, "end", askTerminate)
}

func tell(ctx context.Context, controlPath, what string, kind uint32) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errSilent)
	defer cancel()
	c, err := dialControl(ctx, controlPath)
	if err != nil {
		if errors.Is(err, ErrNoMaster) {
			return nil
		}
		return err
	}
	defer c.close()
	err = c.do(ctx, what, kind)
	if _, ended := errors.AsType[*link.LostError](err); ended { // before its answer
		return nil
	}
	return err
}
