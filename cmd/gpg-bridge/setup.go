package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gpg-bridge/internal/sshconfig"
)

const setupLong = `setup writes into your ssh_config what makes ssh, scp, git and editors bring the
agent along to these hosts. It shows the change, keeps a copy of the file beside
it, and writes only what your ssh has confirmed to mean what it should. A
ProxyJump or ProxyCommand that a host has is kept. A second run changes nothing.

  gpg-bridge setup dev             for the host that is dev in ssh_config
  gpg-bridge setup --undo          take the lines out again
  gpg-bridge setup --service dev   print a service that keeps a bridge up`

// setupFlags is the command line of gpg-bridge setup. The flags of gpg-bridge
// proxy are written into the line.
type setupFlags struct {
	proxy   proxyFlags
	given   *pflag.FlagSet
	fdpass  bool
	undo    bool
	dryRun  bool
	service string
}

func newSetup(ui *ui) *cobra.Command {
	var flags setupFlags
	cmd := &cobra.Command{
		Use:   "setup [flags] host…",
		Short: "write the ssh_config lines that give plain ssh the agent, or print a service",
		Long:  setupLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			flags.given = cmd.Flags()
			if err := flags.check(hosts); err != nil {
				return &usageError{cmd.CommandPath(), err}
			}
			return flags.run(cmd.Context(), ui, unique(hosts))
		},
	}
	flags.addTo(cmd.Flags())
	return cmd
}

func (f *setupFlags) addTo(flags *pflag.FlagSet) {
	f.proxy.addTo(flags)
	for _, name := range setupOwnArgs() {
		_ = flags.MarkHidden(name)
	}
	flags.BoolVar(&f.fdpass, "fdpass", false, "let the proxy hand its socket over to ssh, which is a little faster; not through a jump host")
	flags.BoolVar(&f.undo, "undo", false, "take the lines out again, of these hosts or of all")
	flags.BoolVarP(&f.dryRun, "dry-run", "n", false, "only show the change")
	flags.StringVar(&f.service, "service", "", "print a service instead that keeps bridges up: `systemd or launchd`")
	flags.Lookup("service").NoOptDefVal = "auto"
}

// setupOwnArgs are the flags of the proxy that ssh gives it.
func setupOwnArgs() []string { return []string{"alias", "user"} }

func (f *setupFlags) check(hosts []string) error {
	for _, host := range hosts {
		if !sshconfig.ValidHost(host) {
			return fmt.Errorf("%q is not a host's name, as it stands behind Host in ssh_config", host)
		}
	}
	for _, name := range setupOwnArgs() {
		if f.given.Changed(name) {
			return fmt.Errorf("--%s is what ssh tells the proxy", name)
		}
	}
	switch {
	case f.undo && f.service != "":
		return errors.New("--undo and --service exclude each other")
	case len(hosts) == 0 && !f.undo && f.service == "":
		return errNoDestination
	case f.proxy.via != "" && f.proxy.jump != "":
		return errors.New("--via and -J exclude each other")
	case f.proxy.config == "none":
		return errors.New("-F none is no file to write to")
	case f.fdpass && runtime.GOOS == "windows":
		return errors.New("Windows cannot hand a socket over: leave --fdpass out")
	}
	return nil
}

func unique(names []string) []string {
	var list []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func (f *setupFlags) run(ctx context.Context, ui *ui, hosts []string) error {
	program, err := programName()
	if err != nil {
		return err
	}
	if f.service != "" {
		return f.printService(ui, hosts)
	}
	s := &setup{ui: ui, flags: f, program: program}
	if err := s.open(); err != nil {
		return err
	}
	change := s.change
	if f.undo {
		change = s.undo
	}
	result, err := change(ctx, hosts)
	if err != nil {
		return err
	}
	return s.install(result)
}

// programName is how ssh is to call this program: by its name where PATH leads
// to it, else by its path. Win32-OpenSSH does not always look in PATH, and takes
// slashes for what they are.
func programName() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath("gpg-bridge")
	if err == nil && runtime.GOOS != "windows" && sameFile(found, self) {
		return "gpg-bridge", nil
	}
	return filepath.ToSlash(self), nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
