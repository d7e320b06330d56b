package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

const downLong = `down ends bridges and returns when they are gone, and their sockets on the hosts
with them. A running gpg-bridge ssh stays; gpg on its host is then not served any
more. What uses the bridge now does without; the next ssh to the host may start a
new one.`

// downFlags is the command line of gpg-bridge down.
type downFlags struct {
	spec target.Spec
	all  bool
}

func newDown(user *ui.UI) *cobra.Command {
	var flags downFlags
	cmd := &cobra.Command{
		Use:   "down [flags] host… | --all",
		Short: "end bridges",
		Long:  downLong,
		Args: func(cmd *cobra.Command, hosts []string) error {
			if flags.all && len(hosts) > 0 {
				return ui.Usage(cmd.CommandPath(), errors.New("hosts, or --all: not both"))
			}
			if flags.all {
				return nil
			}
			return someHosts(cmd, hosts)
		},
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), user, hosts)
		},
	}
	flags.spec.AddFlags(cmd.Flags(), target.OfWay)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all bridges")
	return cmd
}

func (f *downFlags) run(ctx context.Context, user *ui.UI, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	ids, err := f.targets(ctx, user, dir, hosts)
	if err != nil {
		return err
	}
	failures := make([]error, len(ids))
	var ending sync.WaitGroup
	for i, id := range ids {
		ending.Go(func() { failures[i] = background.TakeDown(ctx, dir, id) })
	}
	ending.Wait()
	return errors.Join(failures...)
}

// targets returns the IDs of the targets whose bridges to end.
func (f *downFlags) targets(ctx context.Context, user *ui.UI, dir *share.Dir, hosts []string) ([]string, error) {
	if f.all {
		ids, err := dir.IDs()
		return background.OnlyTargets(ids), err
	}
	running, failed := background.Statuses(ctx, dir)
	var ids []string
	for _, c := range background.Choose(ctx, f.spec, hosts) {
		meant := c.Among(running)
		for _, status := range meant {
			ids = append(ids, status.ID)
		}
		switch {
		case len(meant) > 0:
		case c.IsSilent(dir):
			ids = append(ids, c.ID)
		default:
			user.Tell(c.Host + ": there is no bridge to end")
		}
	}
	if len(ids) == 0 && failed != nil {
		return nil, failed
	}
	return background.OnlyTargets(ids), nil
}
