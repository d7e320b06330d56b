package config

import "context"

// Dump returns what the user's own ssh makes of the options: what `ssh -G` prints. It runs
// the commands of `Match exec`, as ssh does. Errors are *Error, which wraps
// [exec.ErrNotFound] where there is no ssh.
func Dump(ctx context.Context, o Options) (Settings, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ssh, err := findSSH(ctx)
	if err != nil {
		return nil, err
	}
	out, said, err := ssh.run(ctx, o.Arguments()...)
	if err != nil {
		return nil, sshFailed(ctx, o, said, err)
	}
	return parseSettings(out), nil
}
