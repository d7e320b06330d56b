package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

const downLong = `down ends bridges and returns when they are gone, and their sockets on the hosts
with them. A running gpg-bridge ssh stays; gpg on its host is then not served any
more. What uses the bridge now does without; the next ssh to the host may start a
new one.`

// downTimeout bounds the waiting for one bridge: it tidies up on the host first,
// for closeTimeout at most.
const downTimeout = 2*closeTimeout + 5*time.Second

// silentTries is how often a bridge that holds its lock is asked again.
const silentTries = 10

// downFlags is the command line of gpg-bridge down.
type downFlags struct {
	options sshfwd.Options
	all     bool
}

func newDown(ui *ui) *cobra.Command {
	var flags downFlags
	cmd := &cobra.Command{
		Use:   "down [flags] host… | --all",
		Short: "end bridges",
		Long:  downLong,
		Args: func(cmd *cobra.Command, hosts []string) error {
			if flags.all && len(hosts) > 0 {
				return &usageError{cmd.CommandPath(), errors.New("hosts, or --all: not both")}
			}
			if flags.all {
				return nil
			}
			return someHosts(cmd, hosts)
		},
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), ui, hosts)
		},
	}
	addConnection(cmd.Flags(), &flags.options)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all bridges")
	return cmd
}

func (f *downFlags) run(ctx context.Context, ui *ui, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	ids, err := f.targets(ctx, ui, dir, hosts)
	if err != nil {
		return err
	}
	failures := make([]error, len(ids))
	var ending sync.WaitGroup
	for i, id := range ids {
		ending.Go(func() { failures[i] = takeDown(ctx, dir, id) })
	}
	ending.Wait()
	return errors.Join(failures...)
}

// targets are the IDs of those to end, without their standbys.
func (f *downFlags) targets(ctx context.Context, ui *ui, dir *share.Dir, hosts []string) ([]string, error) {
	if f.all {
		ids, err := dir.IDs()
		return onlyTargets(ids), err
	}
	running, failed := statuses(ctx, dir)
	var ids []string
	for _, c := range choose(ctx, f.options, hosts) {
		meant := c.among(running)
		for _, status := range meant {
			ids = append(ids, status.ID)
		}
		switch {
		case len(meant) > 0:
		case c.isSilent(dir):
			ids = append(ids, c.id)
		default:
			ui.tell(c.host + ": there is no bridge to end")
		}
	}
	if len(ids) == 0 && failed != nil {
		return nil, failed
	}
	return onlyTargets(ids), nil
}

// isSilent reports whether there is a bridge all the same, which does not answer.
func (c *chosen) isSilent(dir *share.Dir) bool {
	if c.id == "" {
		return false
	}
	held, err := dir.Held(c.id)
	return err == nil && held
}

// onlyTargets makes of the IDs of bridges and standbys those of the targets, each
// once.
func onlyTargets(ids []string) []string {
	seen := map[string]bool{}
	var targets []string
	for _, id := range ids {
		if target, ok := standbyOf(id); ok {
			id = target
		}
		if !seen[id] {
			seen[id] = true
			targets = append(targets, id)
		}
	}
	return targets
}

// takeDown ends a target's bridge and its standby, which may change places
// meanwhile.
func takeDown(ctx context.Context, dir *share.Dir, id string) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		found := false
		for _, entry := range []string{standbyID(id), id} {
			_, err := dir.Stop(ctx, entry)
			switch {
			case err == nil:
				found = true
			case ctx.Err() != nil:
				return fmt.Errorf("a bridge does not end: %w", &silentError{dir.LockPath(entry)})
			case !errors.Is(err, share.ErrNobody):
				return err
			}
		}
		if found {
			continue
		}
		err := nobodyHolds(dir, standbyID(id), id)
		if err == nil || tries > silentTries {
			return err
		}
		_ = retry.Sleep(ctx, holderPause, nil) // it may be about to listen
	}
}

// nobodyHolds is an error where a process holds one of these and does not answer.
func nobodyHolds(dir *share.Dir, ids ...string) error {
	for _, id := range ids {
		if held, err := dir.Held(id); err != nil {
			return err
		} else if held {
			return &silentError{dir.LockPath(id)}
		}
	}
	return nil
}
