package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"unicode"

	"gpg-bridge/internal/sshflags"
)

// Options say what ssh is asked about. [To] makes them of a destination.
type Options struct {
	Destination string // [user@]host or ssh://[user@]host[:port], for messages; it is among Words, too

	// Words are flags of ssh(1) and the destination, in the user's order: ssh takes the first
	// of several values for some settings and the last for others (see sshflags.Line.Asking).
	Words   []string
	Command string // the command to run, "" for a shell: a Match can depend on it

	BatchMode bool // nothing may be asked, whatever Words and ssh_config say

	// Detached: this process does not run in its user's current directory. Dial then
	// refuses what depends on it.
	Detached bool
}

// To returns the Options for a destination and flags of ssh, one or two words each.
func To(destination string, flags ...string) Options {
	return Options{Destination: destination, Words: append(slices.Clip(flags), "--", destination)}
}

// Batch returns the Options with BatchMode.
func (o Options) Batch() Options {
	o.BatchMode = true
	return o
}

// OptionFlags returns options of ssh_config, each "Keyword=value" or "Keyword value", as flags.
func OptionFlags(options []string) (flags []string) {
	for _, option := range options {
		flags = append(flags, "-o", option)
	}
	return flags
}

// Resolve returns the configuration that the user's own ssh would connect with:
// it runs `ssh -G` with the same flags (Match, Include, canonicalisation and
// tokens are then ssh's own), or, where there is no ssh, reads ssh_config
// itself and refuses what it cannot. It runs the commands of `Match exec`, as
// ssh does. Errors are *Error.
func Resolve(ctx context.Context, o Options) (*Config, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ssh, err := findSSH(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return resolveWithoutSSH(o)
	case err != nil:
		return nil, err
	}
	return resolveWithSSH(ctx, ssh, o)
}

func (o Options) check() error {
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	if o.Destination == "" || strings.HasPrefix(o.Destination, "-") || strings.ContainsFunc(o.Destination, bad) {
		return &Error{
			Problem: fmt.Sprintf("%q is not a destination", o.Destination),
			Advice:  "name a host: [user@]host or ssh://[user@]host[:port]",
		}
	}
	line, err := sshflags.Parse(o.Words, nil)
	if err == nil && line.Destination != o.Destination {
		err = fmt.Errorf("%q is not the destination %q", line.Destination, o.Destination)
	}
	if err != nil {
		return &Error{Problem: "bad arguments for ssh", Advice: "see ssh(1)", Err: err}
	}
	return o.checkNames()
}

// line are the words, taken apart; check has seen that they can be.
func (o Options) line() sshflags.Line {
	line, _ := sshflags.Parse(o.Words, nil)
	return line
}

// configFile is the file of -F, "none" for no file at all, or "".
func (o Options) configFile() string {
	line := o.line()
	return line.Last('F')
}

// Arguments are the arguments of `ssh -G` for these options.
func (o Options) Arguments() []string {
	args := []string{"-G"}
	if o.BatchMode {
		args = append(args, "-oBatchMode=yes") // ssh takes the first one
	}
	args = append(args, o.Words...)
	if o.Command != "" {
		args = append(args, o.Command)
	}
	return args
}

// resolveWithSSH runs two ssh -G concurrently: one for the destination, and one without
// any configuration, which prints ssh's own defaults as if the user had set them.
func resolveWithSSH(ctx context.Context, ssh program, o Options) (*Config, error) {
	var defaults Settings
	var wg sync.WaitGroup
	wg.Go(func() {
		// If this fails, defaults is empty and every list counts as the user's:
		// stricter, never laxer.
		out, _, _ := ssh.run(ctx, "-G", "-F", os.DevNull, "--", "localhost")
		defaults = parseSettings(out)
	})
	out, warnings, err := ssh.run(ctx, o.Arguments()...)
	wg.Wait()
	if err != nil {
		return nil, sshFailed(ctx, o, warnings, err)
	}
	resolved := parseSettings(out)
	c, err := newConfig(o, resolved, defaults)
	if err != nil {
		return nil, err
	}
	if strings.Contains(resolved.get("revokedhostkeys"), " ") && takesOneRevokedFile(ctx, ssh) {
		c.RevokedHostKeys = expandTildes([]string{resolved.Text("revokedhostkeys")})
	}
	c.Warnings = warnings
	if c.ProxyJump != "" && strings.Contains(c.LocalCommand, "%C") {
		c.hash = askHash(ctx, ssh, o)
	}
	return c, nil
}

// askHash asks ssh for the token %C, "" if it does not tell: ssh -G expands it in ControlPath.
func askHash(ctx context.Context, ssh program, o Options) string {
	o.Words = append([]string{"-o", "ControlPath=/%C"}, o.Words...)
	out, _, err := ssh.run(ctx, o.Arguments()...)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(parseSettings(out).get("controlpath"), "/")
}

func sshFailed(ctx context.Context, o Options, said []string, err error) error {
	refused, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case len(said) > 0:
		err = errors.New(strings.Join(said, "; "))
	case ended && refused.ExitCode() == 255:
		said = []string{} // by -q
	}
	return &Error{
		Problem: fmt.Sprintf("ssh does not accept the configuration for %q", o.Destination),
		Advice:  "correct it until `ssh -G` with the same arguments succeeds",
		Err:     err,
		Said:    said,
	}
}
