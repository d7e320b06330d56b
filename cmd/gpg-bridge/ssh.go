package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gpg-bridge/internal/sshsession"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

const sshLong = `ssh runs a command on a host, or your login shell, with your local gpg-agent
forwarded to where the host's gpg looks for its own. It connects as your own ssh
would, from your ssh_config; its flags are ssh's.

  gpg-bridge ssh dev                      a shell; git commit -S, gpg --decrypt work there
  gpg-bridge ssh dev git commit -S -m x   one command
  gpg-bridge ssh -N dev                   forward only, until Ctrl-C

The exit status is the remote command's, or 255 when the connection failed.`

// sshFlags is the command line of gpg-bridge ssh.
type sshFlags struct{ request sshsession.Request }

func (f *sshFlags) addTo(flags *pflag.FlagSet) {
	r := &f.request
	r.Spec.AddFlags(flags, target.OfAgent|target.OfHost|target.OfWay)
	flags.BoolVarP(&r.NoStdin, "no-stdin", "n", false, "read nothing from stdin")
	flags.BoolVarP(&r.Subsystem, "subsystem", "s", false, "the command is the name of a subsystem")
	flags.StringArrayVarP(&r.LocalForwards, "local-forward", "L", nil, "forward a local `port` or socket; may be repeated")
	flags.StringArrayVarP(&r.RemoteForwards, "remote-forward", "R", nil, "forward a `port` or socket of the host; may be repeated")
	flags.StringArrayVarP(&r.DynamicForwards, "dynamic-forward", "D", nil, "a SOCKS proxy on a local `port`; may be repeated")
	flags.VarPF(optionFlag{&r.Spec.Options, "EscapeChar"}, "escape", "e", "the escape `character`, ^X or none")
	flags.VarPF(optionFlag{&r.Spec.Options, "GatewayPorts"}, "gateway-ports", "g", "others may use the local forwards").NoOptDefVal = "yes"
	flags.BoolFuncP("forward-agent", "A", "let the host use your ssh-agent", f.set("ForwardAgent=yes"))
	flags.BoolFuncP("no-forward-agent", "a", "do not let the host use your ssh-agent", f.set("ForwardAgent=no"))
	flags.BoolVarP(&r.NoShell, "no-command", "N", false, "run nothing: forward only, until a signal")
	flags.BoolFuncP("no-tty", "T", "no terminal on the host", f.setNoTTY)
	flags.BoolFuncP("tty", "t", "a terminal on the host for a command too; -tt even without one here", f.setTTY)
	flags.CountVarP(&r.Verbosity, "verbose", "v", "say what happens")
	flags.BoolVarP(&r.Quiet, "quiet", "q", false, "no warnings")
}

// set returns the function of a flag without a value: it sets an ssh_config option ahead of
// those of -o, like ssh's own flags.
func (f *sshFlags) set(option string) func(string) error {
	return func(string) error {
		options := &f.request.Spec.Options
		*options = append([]string{option}, *options...)
		return nil
	}
}

// setTTY is -t and setNoTTY is -T: as with ssh's, the last one counts.
func (f *sshFlags) setTTY(string) error {
	if f.request.TTY == "yes" || f.request.TTY == "force" {
		f.request.TTY = "force"
	} else {
		f.request.TTY = "yes"
	}
	return nil
}

func (f *sshFlags) setNoTTY(string) error {
	f.request.TTY = "no"
	return nil
}

func newSSH(user *ui.UI) *cobra.Command {
	flags := sshFlags{sshsession.Request{Spec: target.NewSpec("")}}
	cmd := &cobra.Command{
		Use:   "ssh [flags] [user@]host [command [arg…]]",
		Short: "a shell or a command on a host, with the local agent forwarded",
		Long:  sshLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.destination(cmd, args); err != nil {
				return err
			}
			return sshsession.Run(cmd.Context(), flags.request, user)
		},
	}
	flags.addTo(cmd.Flags())
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// destination takes the host and the flags after it from args; the rest is the command. There
// are no flags after `--`: if that came before the host, everything after the host is the
// command (opt_terminated in OpenSSH's ssh.c).
func (f *sshFlags) destination(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return ui.Usage(cmd.CommandPath(), errNoDestination)
	}
	f.request.Spec.Host = args[0]
	if cmd.ArgsLenAtDash() >= 0 {
		f.request.Command = strings.Join(args[1:], " ")
		return nil
	}
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return ui.Usage(cmd.CommandPath(), err)
	}
	if help, err := cmd.Flags().GetBool("help"); err == nil && help {
		return pflag.ErrHelp
	}
	f.request.Command = strings.Join(cmd.Flags().Args(), " ")
	return nil
}

// An optionFlag is a flag that stands for a -o of ssh_config.
type optionFlag struct {
	options *[]string
	keyword string
}

func (f optionFlag) String() string { return "" }
func (f optionFlag) Type() string   { return "string" }
func (f optionFlag) Set(value string) error {
	*f.options = append(*f.options, f.keyword+"="+value)
	return nil
}
