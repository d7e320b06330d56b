package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
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
	options sshfwd.Options
	json    bool
	watch   bool
}

func newStatus(ui *ui) *cobra.Command {
	var flags statusFlags
	cmd := &cobra.Command{
		Use:   "status [flags] [host…]",
		Short: "the bridges of this machine",
		Long:  statusLong,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), ui, hosts)
		},
	}
	addConnection(cmd.Flags(), &flags.options)
	cmd.Flags().BoolVar(&flags.json, "json", false, "as JSON")
	cmd.Flags().BoolVar(&flags.watch, "watch", false, "go on, until Ctrl-C")
	return cmd
}

func (f *statusFlags) run(ctx context.Context, ui *ui, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	wanted := selection{hosts: choose(ctx, f.options, hosts)}
	if f.watch {
		return f.follow(ctx, ui, dir, wanted)
	}
	all, err := statuses(ctx, dir)
	if err != nil {
		ui.warn(err)
	}
	shown := wanted.of(all)
	if f.json {
		err = printJSON(ui, append([]share.Status{}, shown...))
	} else {
		err = ui.print(table(shown, time.Now()))
	}
	return errors.Join(err, wanted.missing(all))
}

// A selection is the hosts on the command line; none means all.
type selection struct{ hosts []chosen }

// of returns those that are meant, in their order.
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
		if c.isMeant(status) {
			return true
		}
	}
	return len(s.hosts) == 0
}

// missing is an error for the first host that has no bridge.
func (s selection) missing(all []share.Status) error {
	for _, c := range s.hosts {
		if len(c.among(all)) == 0 {
			return &noBridgeError{c.host}
		}
	}
	return nil
}

// printJSON prints a value on a line of its own.
func printJSON(ui *ui, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return ui.print(asciiJSON(line) + "\n")
}

// watchEvery is how often the runtime directory is looked at for new bridges.
const watchEvery = time.Second

// follow prints the table again whenever something has changed, or a line for
// each change, until ctx ends.
func (f *statusFlags) follow(ctx context.Context, ui *ui, dir *share.Dir, wanted selection) error {
	if f.json {
		return watch(ctx, dir, func(w *watcher) error {
			if w.last == nil || !wanted.isMeant(*w.last) {
				return nil
			}
			return printJSON(ui, w.last)
		})
	}
	display := newDisplay(ui)
	return watch(ctx, dir, func(w *watcher) error {
		return display.show(table(wanted.of(w.all()), time.Now()), w.last != nil)
	})
}

// watch calls show for everything that a bridge says, and once in a while.
func watch(ctx context.Context, dir *share.Dir, show func(*watcher) error) error {
	w, err := newWatcher(ctx, dir)
	if err != nil {
		return err
	}
	defer w.stop()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		if err := w.look(); err != nil {
			return err
		}
		if err := show(w); err != nil {
			return err
		}
		w.last = nil
		select {
		case status := <-w.news:
			w.note(status)
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
