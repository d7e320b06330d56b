package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/ui"
)

const rootLong = `gpg-bridge lets gpg on a host that you reach by SSH use the gpg-agent of the
machine in front of you. Your secret keys stay here.`

// newRoot builds the command tree. Every command returns its error; ExitCode
// prints it.
func newRoot(user *ui.UI) *cobra.Command {
	root := &cobra.Command{
		Use:               "gpg-bridge",
		Short:             "use your OpenPGP keys on a host that must never hold them",
		Long:              rootLong,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return ui.Usage(cmd.CommandPath(), fmt.Errorf("unknown command %q", args[0]))
			}
			return cmd.Help()
		},
	}
	root.SetOut(user.Stdout)
	root.SetErr(user.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return ui.Usage(cmd.CommandPath(), err)
	})
	root.AddCommand(newSSH(user), newConnect(user), newVersion(user), newKeep(user), newUp(user), newDown(user), newStatus(user), newSetup(user), newProxy(user))
	if attend := newAttend(user); attend != nil {
		root.AddCommand(attend)
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// knownTopic refuses an unknown topic, for which cobra would show the help of another command.
func knownTopic(help *cobra.Command, args []string) error {
	if topic, rest, err := help.Root().Find(args); err != nil || len(rest) > 0 && !topic.HasParent() {
		return ui.Usage(help.Root().CommandPath(), fmt.Errorf("no help on %q", strings.Join(args, " ")))
	}
	return nil
}

// exactArgs is cobra.ExactArgs with a usage error.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return ui.Usage(cmd.CommandPath(), err)
		}
		return nil
	}
}

var errNoDestination = errors.New("which host?")
