package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

const statusLong = `status lists the bridges of this machine: those of gpg-bridge up, of a ProxyCommand
and of every gpg-bridge ssh. For hosts, it lists theirs, and the exit status is 1
if one has none.

  gpg-bridge status --watch          on and on, until Ctrl-C
  gpg-bridge status --json           an array, for programs
  gpg-bridge status --json --watch   a line for each change

docs/control.md has the fields of --json.`

// statusFlags is the command line of gpg-bridge status.
type statusFlags struct {
	spec  target.Spec
	json  bool
	watch bool
}

func newStatus(user *ui.UI) *cobra.Command {
	var flags statusFlags
	cmd := &cobra.Command{
		Use:   "status [flags] [host…]",
		Short: "the bridges of this machine",
		Long:  statusLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), user, hosts)
		},
	}
	flags.spec.AddFlags(cmd.Flags(), target.OfWay)
	cmd.Flags().BoolVar(&flags.json, "json", false, "as JSON")
	cmd.Flags().BoolVar(&flags.watch, "watch", false, "go on, until Ctrl-C")
	return cmd
}

func (f *statusFlags) run(ctx context.Context, user *ui.UI, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	wanted := selection{hosts: background.Choose(ctx, f.spec, hosts)}
	if f.watch {
		return f.follow(ctx, user, dir, wanted)
	}
	all, err := background.Statuses(ctx, dir)
	if err != nil {
		user.Warn(err)
	}
	shown := wanted.of(all)
	if f.json {
		err = printJSON(user, append([]share.Status{}, shown...))
	} else {
		err = user.Print(table(shown, time.Now()))
	}
	return errors.Join(err, wanted.missing(all))
}

// A selection has the hosts on the command line; none means all bridges.
type selection struct{ hosts []background.Named }

// of returns the bridges that are meant, in their order.
func (s selection) of(all []share.Status) []share.Status {
	if len(s.hosts) == 0 {
		return all
	}
	var meant []share.Status
	for _, status := range all {
		if s.isMeant(status) {
			meant = append(meant, status)
		}
	}
	return meant
}

func (s selection) isMeant(status share.Status) bool {
	for _, c := range s.hosts {
		if c.IsMeant(status) {
			return true
		}
	}
	return len(s.hosts) == 0
}

// missing returns an error for the first host that has no bridge.
func (s selection) missing(all []share.Status) error {
	for _, c := range s.hosts {
		if len(c.Among(all)) == 0 {
			return &background.NoBridgeError{Host: c.Host}
		}
	}
	return nil
}

// printJSON prints a value on a line of its own.
func printJSON(user *ui.UI, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return user.Print(asciiJSON(line) + "\n")
}

// watchEvery is how often the runtime directory is checked for new bridges.
const watchEvery = time.Second

// follow prints the table again whenever something has changed, or a line for
// each change, until ctx ends.
func (f *statusFlags) follow(ctx context.Context, user *ui.UI, dir *share.Dir, wanted selection) error {
	if f.json {
		return watch(ctx, dir, func(w *background.Watcher) error {
			if w.Last == nil || !wanted.isMeant(*w.Last) {
				return nil
			}
			return printJSON(user, w.Last)
		})
	}
	display := newDisplay(user)
	return watch(ctx, dir, func(w *background.Watcher) error {
		return display.show(table(wanted.of(w.All()), time.Now()), w.Last != nil)
	})
}

// watch calls show for every status that a bridge sends, and once in a while.
func watch(ctx context.Context, dir *share.Dir, show func(*background.Watcher) error) error {
	w, err := background.NewWatcher(ctx, dir)
	if err != nil {
		return err
	}
	defer w.Stop()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		if err := w.Look(); err != nil {
			return err
		}
		if err := show(w); err != nil {
			return err
		}
		w.Last = nil
		select {
		case status := <-w.News:
			w.Note(status)
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
