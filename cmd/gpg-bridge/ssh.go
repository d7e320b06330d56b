package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gpg-bridge/internal/realssh"
	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/sshsession"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
)

const sshLong = `ssh runs a command on a host, or your login shell, with your local gpg-agent
forwarded to where the host's gpg looks for its own. It connects as your own ssh
would, from your ssh_config; its flags are ssh's.

  gpg-bridge ssh dev                      a shell; git commit -S, gpg --decrypt work there
  gpg-bridge ssh dev git commit -S -m x   one command
  gpg-bridge ssh -N dev                   forward only, until Ctrl-C

The exit status is the remote command's, or 255 when the connection failed.

ssh's flags, which are read as ssh reads them:
`

// sshFlags are the flags of gpg-bridge ssh that are not ssh's.
type sshFlags struct {
	spec target.Spec
	set  *pflag.FlagSet // writes into spec
}

func newSSH(user *ui.UI) *cobra.Command {
	flags := sshFlags{spec: target.NewSpec("")}
	cmd := &cobra.Command{
		Use:                "ssh [flags] [user@]host [command [arg…]]",
		Short:              "a shell or a command on a host, with the local agent forwarded",
		Long:               sshLong + sshflags.Help(),
		DisableFlagParsing: true, // ssh reads them in another way (sshflags.Parse)
		RunE: func(cmd *cobra.Command, args []string) error {
			line, err := sshflags.Parse(args, flags.own)
			if err != nil {
				return flags.usage(user, cmd.CommandPath(), err)
			}
			return flags.run(cmd, user, line)
		},
	}
	flags.addTo(cmd.Flags())
	return cmd
}

func (f *sshFlags) addTo(set *pflag.FlagSet) {
	f.set = set
	set.Bool("help", false, "show this help")
	f.spec.AddFlags(set, target.OfAgent|target.OfHost)
}

// own is an [sshflags.Own].
func (f *sshFlags) own(words []string) (taken int, err error) {
	name, _, hasValue := strings.Cut(words[0][2:], "=")
	taken = 1
	if flag := f.set.Lookup(name); flag != nil && flag.NoOptDefVal == "" && !hasValue {
		taken = min(2, len(words))
	}
	if err := f.set.Parse(words[:taken]); err != nil {
		return 0, err
	}
	if help, err := f.set.GetBool("help"); err == nil && help {
		return 0, pflag.ErrHelp
	}
	return taken, nil
}

// usage reports a command line that cannot be understood, with ssh's exit status. For what
// ssh would say, too, these are ssh's words.
func (f *sshFlags) usage(user *ui.UI, command string, err error) error {
	said, isSSHs := errors.AsType[*sshflags.UsageError](err)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case !isSSHs:
		return ui.Exit(ui.ExitConnection, ui.Usage(command, err))
	}
	user.Show(said.Error() + "\n" + f.usageText(command))
	return ui.Exit(ui.ExitConnection, nil)
}

// usageText lists ssh's flags and our own.
func (f *sshFlags) usageText(command string) string {
	var own []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(flag)
		own = append(own, strings.TrimSpace("--"+flag.Name+" "+value))
	})
	return sshflags.Usage(command, own...)
}

func (f *sshFlags) run(cmd *cobra.Command, user *ui.UI, line sshflags.Line) error {
	if line.IsHanded {
		return f.handOn(cmd.Context(), user, line)
	}
	if line.Destination == "" {
		user.Show(f.usageText(cmd.CommandPath()))
		return ui.Exit(ui.ExitConnection, nil)
	}
	if err := redirect(user, line); err != nil {
		return err
	}
	return sshsession.Run(cmd.Context(), f.request(line), user)
}

// handOn lets the user's own ssh do it all.
func (f *sshFlags) handOn(ctx context.Context, user *ui.UI, line sshflags.Line) error {
	if line.Has('V') && realssh.IsAsked() {
		return user.Output(realssh.Answer)
	}
	path, environ, err := realssh.Find(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		err = usertext.WithHint("there is no ssh, which would have to do this", "install OpenSSH's client")
	}
	if err != nil {
		return ui.Exit(ui.ExitConnection, err)
	}
	if line.Has('v') {
		user.SetLevel(usertext.Debug1)
	}
	user.Log().Debug("your own ssh does this, without a bridge", "program", path)
	status, err := realssh.Become(path, line.Args, environ)
	if err != nil {
		status = ui.ExitConnection
	}
	return ui.Exit(status, err)
}

func (f *sshFlags) request(line sshflags.Line) sshsession.Request {
	f.spec.Host = line.Destination
	return sshsession.Request{
		Spec: f.spec, Args: line.Args, Words: line.Asking(), Command: line.Join(),
	}
}
