package setup

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpg-bridge/internal/sshconfig"
	"gpg-bridge/internal/target"
)

// Options are the flags of gpg-bridge setup.
type Options struct {
	undo    bool
	dryRun  bool
	service string // "" for none, "auto" for the one of this system, "systemd" or "launchd"

	spec   target.Spec // what is written into the line, or the service
	fdpass bool
	given  *pflag.FlagSet // tells which flags the user has given
}

// sshsFlags are the flags of gpg-bridge proxy that ssh fills in.
func sshsFlags() []string { return []string{"alias", "user"} }

// AddFlags adds all flags. They write into o, with which this is called once.
func (o *Options) AddFlags(to *pflag.FlagSet) {
	o.spec, o.given = target.NewSpec(""), to
	o.spec.AddFlags(to, target.ForProxy)
	for _, name := range sshsFlags() {
		_ = to.MarkHidden(name)
	}
	to.BoolVar(&o.fdpass, "fdpass", false, "let the proxy hand its socket over to ssh, which is a little faster; not through a jump host")
	to.BoolVar(&o.undo, "undo", false, "take the lines out again, of these hosts or of all")
	to.BoolVarP(&o.dryRun, "dry-run", "n", false, "only show the change")
	to.StringVar(&o.service, "service", "", "print a service instead that keeps bridges up: `systemd or launchd`")
	to.Lookup("service").NoOptDefVal = "auto"
}

// Check says what is wrong with a command line of these options and hosts.
func (o *Options) Check(hosts []string) error {
	for _, host := range hosts {
		if !sshconfig.ValidHost(host) {
			return fmt.Errorf("%q is not a host's name, as it stands behind Host in ssh_config", host)
		}
	}
	for _, name := range sshsFlags() {
		if o.given.Changed(name) {
			return fmt.Errorf("--%s is what ssh tells the proxy", name)
		}
	}
	switch {
	case o.undo && o.service != "":
		return errors.New("--undo and --service exclude each other")
	case len(hosts) == 0 && !o.undo && o.service == "":
		return errors.New("which host?")
	case o.spec.Via != "" && o.spec.JumpHosts != "":
		return errors.New("--via and -J exclude each other")
	case o.spec.ConfigFile == "none":
		return errors.New("-F none is no file to write to")
	case o.fdpass && runtime.GOOS == "windows":
		return errors.New("Windows cannot hand a socket over: leave --fdpass out")
	}
	return o.checkService(hosts)
}

func (o *Options) checkService(hosts []string) error {
	switch kind := o.serviceKind(); {
	case o.service == "", kind == systemd, kind == launchd && len(unique(hosts)) == 1:
		return nil
	case kind == launchd:
		return errors.New("a launchd agent is for one host")
	}
	return fmt.Errorf("no services for %q here: use gpg-bridge up when you log in", o.service)
}

// The services that there are.
const (
	systemd = "systemd"
	launchd = "launchd"
)

// serviceKind is "" where the system has none.
func (o *Options) serviceKind() string {
	if o.service != "auto" {
		return o.service
	}
	return map[string]string{"linux": systemd, "darwin": launchd}[runtime.GOOS]
}

// overrule sets the fields of spec whose flags the user has given. A way to the host that
// is given takes the place of any other; -J none is the direct one.
func (o *Options) overrule(spec *target.Spec) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	spec.AddFlags(flags, target.ForProxy)
	o.given.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil {
			_ = flags.Set(f.Name, f.Value.String())
		}
	})
	if o.given.Changed("jump") || o.given.Changed("via") {
		spec.JumpHosts, spec.Via = strings.TrimPrefix(o.spec.JumpHosts, "none"), o.spec.Via
	}
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
