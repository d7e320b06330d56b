package main

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/spf13/pflag"

	"gpg-bridge/sshfwd"
)

// sessionFlags are ssh's flags about the session and the user's own forwards.
type sessionFlags struct {
	noStdin   bool // -n
	subsystem bool // -s
}

func (f *sessionFlags) addTo(flags *pflag.FlagSet, options *sshfwd.Options) {
	flags.BoolVarP(&f.noStdin, "no-stdin", "n", false, "read nothing from stdin")
	flags.BoolVarP(&f.subsystem, "subsystem", "s", false, "the command is the name of a subsystem")
	flags.StringArrayVarP(&options.LocalForwards, "local-forward", "L", nil, "forward a local `port` or socket; may be repeated")
	flags.StringArrayVarP(&options.RemoteForwards, "remote-forward", "R", nil, "forward a `port` or socket of the host; may be repeated")
	flags.StringArrayVarP(&options.DynamicForwards, "dynamic-forward", "D", nil, "a SOCKS proxy on a local `port`; may be repeated")
	flags.VarPF(optionFlag{options, "EscapeChar"}, "escape", "e", "the escape `character`, ^X or none")
	flags.VarPF(optionFlag{options, "GatewayPorts"}, "gateway-ports", "g", "others may use the local forwards").NoOptDefVal = "yes"
}

// An optionFlag is a flag that stands for a -o of ssh_config.
type optionFlag struct {
	options *sshfwd.Options
	keyword string
}

func (f optionFlag) String() string { return "" }
func (f optionFlag) Type() string   { return "string" }
func (f optionFlag) Set(value string) error {
	f.options.Options = append(f.options.Options, f.keyword+"="+value)
	return nil
}

// openForwards sets up the user's own forwards beside the bridge's, which is at
// gpgSocket on the host, or "". What fails is a warning, unless
// ExitOnForwardFailure says otherwise.
func (r *sshRun) openForwards(ctx context.Context, gpgSocket string) error {
	specs := r.config.Forwards
	specs.Remote = slices.DeleteFunc(slices.Clone(specs.Remote), func(spec sshfwd.ForwardSpec) bool {
		same := gpgSocket != "" && spec.Listen.Path != "" && path.Clean(spec.Listen.Path) == path.Clean(gpgSocket)
		if same {
			r.ui.warn(&forwardedTwiceError{spec.Listen.Path})
		}
		return same
	})
	failed := r.client.OpenForwards(ctx, specs, sshfwd.ForwardEvents{
		Failed: func(err error) {
			if r.isInfoShown() {
				r.ui.warn(err)
			}
		},
		Allocated: func(spec sshfwd.ForwardSpec, port int) {
			if r.isInfoShown() {
				r.tell("Allocated port %d for remote forward to %s", port, sshfwd.Printable(spec.Target()))
			}
		},
	})
	for i, err := range failed {
		if r.config.ExitOnForwardFailure && i == len(failed)-1 {
			return err
		}
		r.ui.warn(err)
	}
	return nil
}

// A forwardedTwiceError says that the user's configuration forwards the very
// socket that the bridge serves.
type forwardedTwiceError struct{ path string }

func (e *forwardedTwiceError) Error() string {
	return fmt.Sprintf("your ssh_config already forwards %q; the bridge serves it instead", e.path)
}

// Hint says what to do.
func (e *forwardedTwiceError) Hint() string {
	return "take this RemoteForward out of ssh_config: gpg-bridge does its work"
}
