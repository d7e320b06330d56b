package main

import (
	"github.com/spf13/cobra"

	"gpg-bridge/internal/proxy"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

const proxyLong = `proxy is for ssh_config. It connects ssh to the host, as ssh would itself, and
beside that it sees to a bridge in the background, which all connections to the
host share:

  Host dev
    ProxyCommand /usr/local/bin/gpg-bridge proxy --alias %n --user %r %h %p

gpg-bridge setup writes these lines, with its own path. Nothing about the bridge
can delay or break the connection. The bridge logs in by itself, and asks nothing;
where it cannot, one line says so, once a minute at most. GPG_BRIDGE=quiet in the
environment keeps it to itself, and GPG_BRIDGE=off does without the bridge.`

func newProxy(user *ui.UI) *cobra.Command {
	line := target.NewProxyLine()
	cmd := &cobra.Command{
		Use:   "proxy [flags] host port",
		Short: "for ssh_config's ProxyCommand: plain ssh, scp, git and editors gain the agent",
		Long:  proxyLong,
		Args:  exactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := proxy.New(user, line, args[0], args[1])
			if err != nil {
				return ui.Usage(cmd.CommandPath(), err)
			}
			return p.Run(cmd.Context())
		},
	}
	line.AddFlags(cmd.Flags())
	return cmd
}
