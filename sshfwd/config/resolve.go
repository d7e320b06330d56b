package config

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

	"gpg-bridge/internal/usertext"
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

	// Detached: this process does not run in its user's current directory. Dial then
	// refuses what depends on it.
	Detached bool

	Command   string // the command to run, "" for a shell: a Match can depend on it
	Subsystem bool   // -s: Command is a subsystem's name

	LocalForwards   []string // -L
	RemoteForwards  []string // -R
	DynamicForwards []string // -D
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
		return &Error{
			Problem: fmt.Sprintf("%q is not a destination", o.Destination),
			Advice:  "name a host: [user@]host or ssh://[user@]host[:port]",
		}
	case o.Port < 0 || o.Port > 65535:
		return &Error{Problem: fmt.Sprintf("bad port %d", o.Port), Advice: "a port is a number from 1 to 65535"}
	}
	return o.checkNames()
}

// findSSH prefers, on Windows, the system's ssh to the one that Git brings along, which
// uses MSYS paths.
func findSSH() (string, error) {
	if root := os.Getenv("SystemRoot"); runtime.GOOS == "windows" && root != "" {
		system := filepath.Join(root, "System32", "OpenSSH", "ssh.exe")
		if _, err := os.Stat(system); err == nil {
			return system, nil
		}
	}
	return exec.LookPath("ssh")
}

// Arguments are the arguments of `ssh -G` for these options. The destination stands after
// `--` and is never taken for a flag.
func (o Options) Arguments() []string {
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
	for _, list := range []struct {
		flag  string
		specs []string
	}{{"-L", o.LocalForwards}, {"-R", o.RemoteForwards}, {"-D", o.DynamicForwards}} {
		for _, spec := range list.specs { // ssh itself refuses an empty one
			args = append(args, list.flag, spec)
		}
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

// resolveWithSSH runs two ssh -G concurrently: one for the destination, and one without
// any configuration, which prints ssh's own defaults as if the user had set them.
func resolveWithSSH(ctx context.Context, path string, o Options) (*Config, error) {
	var defaults Settings
	var wg sync.WaitGroup
	wg.Go(func() {
		// If this fails, defaults is empty and every list counts as the user's:
		// stricter, never laxer.
		out, _, _ := runSSH(ctx, path, []string{"-G", "-F", os.DevNull, "--", "localhost"})
		defaults = parseSettings(out)
	})
	out, warnings, err := runSSH(ctx, path, o.Arguments())
	wg.Wait()
	if err != nil {
		return nil, sshFailed(ctx, o, warnings, err)
	}
	resolved := parseSettings(out)
	c, err := newConfig(o, resolved, defaults)
	if err != nil {
		return nil, err
	}
	if strings.Contains(resolved.get("revokedhostkeys"), " ") && takesOneRevokedFile(ctx, path) {
		c.RevokedHostKeys = expandTildes([]string{resolved.Text("revokedhostkeys")})
	}
	c.Warnings = warnings
	return c, nil
}

func sshFailed(ctx context.Context, o Options, said []string, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if len(said) > 0 {
		err = errors.New(strings.Join(said, "; "))
	}
	return &Error{
		Problem: fmt.Sprintf("ssh does not accept the configuration for %q", o.Destination),
		Advice:  "correct it until `ssh -G` with the same arguments succeeds",
		Err:     err,
	}
}

// runSSH returns what ssh printed, and the lines that it wrote to stderr, safe for a
// terminal. ssh gets no stdin: with -G it asks nothing.
func runSSH(ctx context.Context, path string, args []string) (out []byte, said []string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 2 * time.Second
	err = cmd.Run()
	for line := range strings.Lines(stderr.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Pseudo-terminal will not be allocated") {
			said = append(said, usertext.Line(line))
		}
	}
	return stdout.Bytes(), said, err
}
