package sshfwd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Options are what the user gave on the command line; the names are those of
// ssh(1)'s flags. The zero value of a field leaves the matter to ssh_config.
type Options struct {
	Destination   string   // [user@]host or ssh://[user@]host[:port]
	Port          int      // -p
	User          string   // -l
	Identities    []string // -i, in order
	ConfigFile    string   // -F; "none" for no file at all
	Options       []string // -o, each "Keyword=value" or "Keyword value"
	JumpHosts     string   // -J
	AddressFamily string   // "inet" for -4, "inet6" for -6
	BatchMode     bool     // nothing may be asked

	Command   string // what is to run, "" for a shell: Match can ask for it
	Subsystem bool   // -s: Command is a subsystem's name

	LocalForwards   []string // -L
	RemoteForwards  []string // -R
	DynamicForwards []string // -D
}

// Resolve gives the configuration that the user's own ssh would connect with:
// it runs `ssh -G` with the same flags (Match, Include, canonicalisation and
// tokens are then ssh's own), or, where there is no ssh, reads ssh_config
// itself and refuses what it cannot. It runs the commands of `Match exec`, as
// ssh does. Errors are *ConfigError.
func Resolve(ctx context.Context, o Options) (*Config, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	path, err := findSSH()
	if err != nil {
		return resolveWithoutSSH(o)
	}
	return resolveWithSSH(ctx, path, o)
}

func (o Options) check() error {
	bad := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	switch {
	case o.Destination == "" || strings.HasPrefix(o.Destination, "-") || strings.ContainsFunc(o.Destination, bad):
		return &ConfigError{
			Problem: fmt.Sprintf("%q is not a destination", o.Destination),
			Advice:  "name a host: [user@]host or ssh://[user@]host[:port]",
		}
	case o.Port < 0 || o.Port > 65535:
		return &ConfigError{Problem: fmt.Sprintf("bad port %d", o.Port), Advice: "a port is a number from 1 to 65535"}
	}
	return o.checkNames()
}

// findSSH prefers, on Windows, the system's ssh to the one of Git, whose paths
// are those of MSYS.
func findSSH() (string, error) {
	if root := os.Getenv("SystemRoot"); runtime.GOOS == "windows" && root != "" {
		system := filepath.Join(root, "System32", "OpenSSH", "ssh.exe")
		if _, err := os.Stat(system); err == nil {
			return system, nil
		}
	}
	return exec.LookPath("ssh")
}

// arguments are ssh(1)'s. `--` ends the flags: a destination never is one.
func (o Options) arguments() []string {
	args := []string{"-G"}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	add("-F", o.ConfigFile)
	if o.Port != 0 {
		add("-p", strconv.Itoa(o.Port))
	}
	add("-l", o.User)
	for _, file := range o.Identities {
		add("-i", file)
	}
	add("-J", o.JumpHosts)
	switch o.AddressFamily {
	case "inet":
		args = append(args, "-4")
	case "inet6":
		args = append(args, "-6")
	}
	for _, option := range o.Options {
		add("-o", option)
	}
	for _, spec := range o.LocalForwards {
		add("-L", spec)
	}
	for _, spec := range o.RemoteForwards {
		add("-R", spec)
	}
	for _, spec := range o.DynamicForwards {
		add("-D", spec)
	}
	if o.BatchMode {
		add("-o", "BatchMode=yes")
	}
	if o.Subsystem {
		args = append(args, "-s")
	}
	args = append(args, "--", o.Destination)
	if o.Command != "" {
		args = append(args, o.Command)
	}
	return args
}

// resolveWithSSH runs ssh -G twice, at once: for the destination, and without
// any configuration, to know ssh's own defaults, which it prints as if they had
// been set.
func resolveWithSSH(ctx context.Context, path string, o Options) (*Config, error) {
	var defaults settings
	var wg sync.WaitGroup
	wg.Go(func() {
		// Should this fail, defaults is empty and every list counts as the
		// user's: stricter, never laxer.
		out, _, _ := runSSH(ctx, path, []string{"-G", "-F", os.DevNull, "--", "localhost"})
		defaults = parseSettings(out)
	})
	out, warnings, err := runSSH(ctx, path, o.arguments())
	wg.Wait()
	if err != nil {
		return nil, sshFailed(ctx, o, warnings, err)
	}
	c, err := newConfig(o, parseSettings(out), defaults)
	if err != nil {
		return nil, err
	}
	c.Warnings = warnings
	c.setControl(parseSettings(out))
	return c, nil
}

func sshFailed(ctx context.Context, o Options, said []string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if len(said) > 0 {
		err = errors.New(strings.Join(said, "; "))
	}
	return &ConfigError{
		Problem: fmt.Sprintf("ssh does not accept the configuration for %q", o.Destination),
		Advice:  "correct it until `ssh -G` with the same arguments succeeds",
		Err:     err,
	}
}

// runSSH gives what ssh printed, and what it said on stderr line by line, safe
// for a terminal. ssh gets no stdin: it asks nothing under -G.
func runSSH(ctx context.Context, path string, args []string) (out []byte, said []string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	for line := range strings.Lines(stderr.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Pseudo-terminal will not be allocated") {
			said = append(said, printableLine(line))
		}
	}
	return stdout.Bytes(), said, err
}
