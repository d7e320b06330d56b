//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"gpg-bridge/internal/proxy"
	"gpg-bridge/internal/ui"
)

// newAttend makes the command that a proxy starts when it has handed its connection to ssh.
func newAttend(user *ui.UI) *cobra.Command {
	attendant := proxy.NewAttendant()
	cmd := &cobra.Command{
		Use:    "attend [flags] host port",
		Short:  "hold a bridge while a connection lives that proxy has handed over",
		Hidden: true,
		Args:   exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := proxy.New(user, attendant.Line, args[0], args[1])
			if err != nil {
				return ui.Usage(cmd.CommandPath(), err)
			}
			attendant.Run(cmd.Context(), p)
			return nil
		},
	}
	attendant.AddFlags(cmd.Flags())
	return cmd
}
