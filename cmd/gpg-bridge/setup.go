package main

import (
	"github.com/spf13/cobra"

	"gpg-bridge/internal/setup"
	"gpg-bridge/internal/ui"
)

const setupLong = `setup writes into your ssh_config what makes ssh, scp, git and editors bring the
agent along to these hosts. It shows the change, keeps a copy of the file beside
it, and writes only what your ssh has confirmed to mean what it should. A
ProxyJump or ProxyCommand that a host has is kept. A second run changes nothing.

  gpg-bridge setup dev             for the host that is dev in ssh_config
  gpg-bridge setup --undo          take the lines out again
  gpg-bridge setup --service dev   print a service that keeps a bridge up`

func newSetup(user *ui.UI) *cobra.Command {
	var options setup.Options
	cmd := &cobra.Command{
		Use:   "setup [flags] host…",
		Short: "write the ssh_config lines that give plain ssh the agent, or print a service",
		Long:  setupLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			if err := options.Check(hosts); err != nil {
				return ui.Usage(cmd.CommandPath(), err)
			}
			return setup.Run(cmd.Context(), user, &options, hosts)
		},
	}
	options.AddFlags(cmd.Flags())
	return cmd
}
