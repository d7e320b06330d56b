package main

import (
	"github.com/spf13/cobra"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

// newKeep makes the command of a bridge in the background. Only gpg-bridge itself, and the
// services that setup prints, call it.
func newKeep(user *ui.UI) *cobra.Command {
	options := background.Options{Spec: target.NewSpec(""), UI: user}
	cmd := &cobra.Command{
		Use:    "keep [flags] host",
		Short:  "be the bridge in the background; gpg-bridge up and proxy start it",
		Hidden: true,
		Args:   exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Spec.Host = args[0]
			return background.Run(cmd.Context(), options)
		},
	}
	options.Spec.AddFlags(cmd.Flags(), target.All)
	cmd.Flags().StringVar(&options.ID, "id", "", "the target's `ID`")
	cmd.Flags().BoolVar(&options.Pin, "pin", false, "stay without leases")
	cmd.Flags().StringVar(&options.Over, "over", "", "only over the ssh that shares its connection at this `path`, and as long as that lasts")
	cmd.Flags().StringVar(&options.Address, "address", "", "with --over: the target's `user@host:port`")
	cmd.Flags().IntVar(&options.Session, "session", 0, "with --over: end with this `process`, too")
	cmd.Flags().CountVarP(&options.Verbosity, "verbose", "v", "say what happens")
	return cmd
}
