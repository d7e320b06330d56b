package config

import (
	"context"

	"gpg-bridge/internal/realssh"
)

// Dump returns what the user's own ssh makes of the options: what `ssh -G` prints. It runs
// the commands of `Match exec`, as ssh does. Errors are *Error, which wraps
// [exec.ErrNotFound] where there is no ssh.
func Dump(ctx context.Context, o Options) (Settings, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	path, err := realssh.Find()
	if err != nil {
		return nil, &Error{Problem: "there is no ssh to ask", Advice: "install OpenSSH's client", Err: err}
	}
	out, said, err := runSSH(ctx, path, o.Arguments())
	if err != nil {
		return nil, sshFailed(ctx, o, said, err)
	}
	return parseSettings(out), nil
}
