package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

const upLong = `up makes gpg on these hosts use your local gpg-agent from now on: a process in
the background connects to each, and connects again when the connection is lost,
until gpg-bridge down or the end of your session on this machine. It asks nothing:
the host must let you in with a key of your ssh-agent's, or one without passphrase.

  gpg-bridge up dev build      bring two hosts up, and wait until they are
  gpg-bridge status            how they are
  gpg-bridge down --all        end all

Where a gpg-bridge ssh serves the host already, the process in the background
takes over when that ends. The exit status is 1 if a host is not up in time; the
process then goes on trying.`

// defaultUpTimeout is how long up waits for a host.
const defaultUpTimeout = 15 * time.Second

// upFlags is the command line of gpg-bridge up.
type upFlags struct {
	spec    target.Spec
	timeout time.Duration
}

func newUp(user *ui.UI) *cobra.Command {
	flags := upFlags{spec: target.NewSpec("")}
	cmd := &cobra.Command{
		Use:   "up [flags] host…",
		Short: "keep bridges to hosts up in the background",
		Long:  upLong,
		Args:  someHosts,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), user, hosts)
		},
	}
	flags.spec.AddFlags(cmd.Flags(), target.OfAgent|target.OfHost|target.OfWay)
	cmd.Flags().DurationVar(&flags.timeout, "timeout", defaultUpTimeout, "how long to wait for a host")
	return cmd
}

// someHosts requires at least one host.
func someHosts(cmd *cobra.Command, hosts []string) error {
	if len(hosts) == 0 {
		return ui.Usage(cmd.CommandPath(), errNoDestination)
	}
	return nil
}

// run brings up all hosts concurrently, and prints the result for each.
func (f *upFlags) run(ctx context.Context, user *ui.UI, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	home := target.AskHome(ctx)
	defer home.Stop()
	var failed atomic.Bool
	var bringing sync.WaitGroup
	for _, host := range hosts {
		up := background.Up{UI: user, Dir: dir, Home: home, Spec: f.spec, Timeout: f.timeout}
		up.Spec.Host = host
		bringing.Go(func() {
			if text, hint, ok := up.Run(ctx); ok {
				user.Tell(host + ": " + text)
			} else {
				failed.Store(true)
				user.Say(host+": "+text, hint)
			}
		})
	}
	bringing.Wait()
	if failed.Load() {
		return ui.Exit(1, nil)
	}
	return nil
}
