package sshfwd

import "context"

// Dump gives what the user's own ssh makes of the options: the keywords that
// `ssh -G` prints, lower case, each with its values in order. It runs the
// commands of `Match exec`, as ssh does. Errors are *ConfigError; where there is
// no ssh, it wraps [exec.ErrNotFound].
func Dump(ctx context.Context, o Options) (map[string][]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	path, err := findSSH()
	if err != nil {
		return nil, &ConfigError{Problem: "there is no ssh to ask", Advice: "install OpenSSH's client", Err: err}
	}
	out, said, err := runSSH(ctx, path, o.arguments())
	if err != nil {
		return nil, sshFailed(ctx, o, said, err)
	}
	return parseSettings(out), nil
}
