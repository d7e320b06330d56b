package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
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
	local   localFlags
	remote  remoteFlags
	options sshfwd.Options
	timeout time.Duration
}

func newUp(ui *ui) *cobra.Command {
	var flags upFlags
	cmd := &cobra.Command{
		Use:   "up [flags] host…",
		Short: "keep bridges to hosts up in the background",
		Long:  upLong,
		Args:  someHosts,
		RunE: func(cmd *cobra.Command, hosts []string) error {
			return flags.run(cmd.Context(), ui, hosts)
		},
	}
	flags.local.addTo(cmd.Flags())
	flags.remote.addTo(cmd.Flags())
	addConnection(cmd.Flags(), &flags.options)
	cmd.Flags().DurationVar(&flags.timeout, "timeout", defaultUpTimeout, "how long to wait for a host")
	return cmd
}

// someHosts wants at least one.
func someHosts(cmd *cobra.Command, hosts []string) error {
	if len(hosts) == 0 {
		return &usageError{cmd.CommandPath(), errNoDestination}
	}
	return nil
}

// run brings all hosts up at a time, and says of each what became of it.
func (f *upFlags) run(ctx context.Context, ui *ui, hosts []string) error {
	dir, err := share.Open()
	if err != nil {
		return err
	}
	defer dir.Close()
	var failed atomic.Bool
	var bringing sync.WaitGroup
	for _, host := range hosts {
		bringing.Go(func() {
			u := &upHost{dir: dir, host: host, asked: time.Now()}
			if text, hint, ok := f.bring(ctx, ui, u); ok {
				ui.tell(host + ": " + text)
			} else {
				failed.Store(true)
				ui.say(host+": "+text, hint)
			}
		})
	}
	bringing.Wait()
	if failed.Load() {
		return &exitError{1, nil}
	}
	return nil
}

// An upHost is one host on its way up.
type upHost struct {
	dir    *share.Dir
	host   string
	keeper *keeper
	asked  time.Time
	last   share.Status
}

// bring returns what to say of the host, and whether it is up.
func (f *upFlags) bring(ctx context.Context, ui *ui, u *upHost) (text, hint string, ok bool) {
	waiting, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := f.prepare(waiting, ui, u)
	if err == nil {
		err = u.waitUntilUp(waiting)
	}
	switch {
	case u.keeper == nil:
		return err.Error(), hintOf(err), false
	case ctx.Err() != nil:
		return "interrupted; it goes on trying", "see gpg-bridge status; end it with gpg-bridge down " + u.host, false
	case err != nil && waiting.Err() == nil:
		return err.Error(), hintOf(err), false
	}
	return u.describe(f.timeout)
}

// prepare finds out what is to be started for the host.
func (f *upFlags) prepare(ctx context.Context, ui *ui, u *upHost) error {
	flags := &sshFlags{local: f.local, remote: f.remote, options: f.options, noShell: true}
	flags.options.Destination, flags.options.BatchMode = u.host, true
	r := &sshRun{ui: ui, flags: flags, background: true}
	if err := r.resolve(ctx); err != nil {
		return err
	}
	options := f.options
	u.keeper = &keeper{
		dir: u.dir, target: r.target, port: options.Port, pin: true,
		identities: options.Identities, options: options.Options,
		flags: &proxyFlags{
			local: f.local, remote: f.remote, linger: defaultLinger,
			user: options.User, config: options.ConfigFile, jump: options.JumpHosts,
		},
	}
	return nil
}

// waitUntilUp starts what is missing and returns when gpg on the host is served,
// when a try has failed since we asked, or when ctx ends.
func (u *upHost) waitUntilUp(ctx context.Context) error {
	for {
		err := u.watch(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, share.ErrNobody):
			return err
		}
		if err := retry.Sleep(ctx, holderPause, nil); err != nil { // one ended, or was quicker
			return err
		}
	}
}

// watch follows one process that is the bridge. The lease makes it try again at
// once if it waits.
func (u *upHost) watch(ctx context.Context) error {
	lease, err := u.keeper.ensure(ctx)
	if err != nil {
		return err
	}
	defer lease.Close()
	for stays := false; ; {
		status, err := lease.Next()
		if err != nil {
			return err
		}
		if status.State == share.Stopping {
			continue // Next tells when it has
		}
		u.last = status
		if !stays {
			if stays, err = u.makeStay(ctx, status); err != nil {
				return err
			}
		}
		if stays && u.isSettled(status) {
			return nil
		}
	}
}

// makeStay sees to it that there is a bridge for as long as nobody ends it. It
// reports false where that is to be tried again.
func (u *upHost) makeStay(ctx context.Context, status share.Status) (bool, error) {
	id := u.keeper.target.id
	if status.Kind == share.Background {
		status, err := u.dir.Pin(ctx, id)
		return err == nil && status.State != share.Stopping, err
	}
	_, err := u.dir.Status(ctx, standbyID(id))
	if errors.Is(err, share.ErrNobody) {
		err = u.keeper.start(ctx)
	}
	return err == nil, err
}

func (u *upHost) isSettled(status share.Status) bool {
	return status.State == share.Up ||
		status.State == share.Waiting && status.Problem != nil && status.Problem.At.After(u.asked)
}

// describe says how the host is.
func (u *upHost) describe(timeout time.Duration) (text, hint string, ok bool) {
	status := u.last
	if status.State != share.Up {
		const goesOn = "; it goes on trying"
		if status.Problem == nil {
			return fmt.Sprintf("not up after %v, %s", timeout, cmp.Or(string(status.State), "starting")) + goesOn,
				"see gpg-bridge status", false
		}
		return "not up: " + status.Problem.Text + goesOn, status.Problem.Remedy, false
	}
	if status.Kind == share.Session {
		return fmt.Sprintf("up: process %d, a gpg-bridge ssh, serves gpg at %s; one in the background takes over when it ends",
			status.PID, status.RemoteSocket), "", true
	}
	return "up: your agent serves gpg at " + status.RemoteSocket, "", true
}
