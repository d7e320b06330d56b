package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `gpg-bridge lets gpg on a host that you reach by SSH use the gpg-agent of the
machine in front of you. Your secret keys stay here.`

// newRoot builds the command tree. Every command returns its error; exitCode
// prints it.
func newRoot(ui *ui) *cobra.Command {
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
				return &usageError{cmd.CommandPath(), fmt.Errorf("unknown command %q", args[0])}
			}
			return cmd.Help()
		},
	}
	root.SetOut(ui.stdout)
	root.SetErr(ui.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cmd.CommandPath(), err}
	})
	root.AddCommand(newSSH(ui), newConnect(ui), newVersion(ui), newKeep(ui), newUp(ui), newDown(ui), newStatus(ui), newSetup(ui), newProxy(ui))
	if attend := newAttend(ui); attend != nil {
		root.AddCommand(attend)
	}
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = knownTopic
	}
	return root
}

// knownTopic refuses what help would answer with the help of something else.
func knownTopic(help *cobra.Command, args []string) error {
	if topic, rest, err := help.Root().Find(args); err != nil || len(rest) > 0 && !topic.HasParent() {
		return &usageError{help.Root().CommandPath(), fmt.Errorf("no help on %q", strings.Join(args, " "))}
	}
	return nil
}

// exactArgs is cobra.ExactArgs with a usage error.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return &usageError{cmd.CommandPath(), err}
		}
		return nil
	}
}
