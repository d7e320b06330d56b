package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
	"gpg-bridge/sshfwd"
)

// A silentError says that a process holds a target's lock and does not answer.
type silentError struct{ lock string }

func (e *silentError) Error() string {
	return "a process is the bridge of a target and does not answer"
}

// Hint says how to find it.
func (e *silentError) Hint() string {
	if runtime.GOOS == "windows" {
		return "end the gpg-bridge.exe that hangs with the Task Manager; it has " + e.lock + " open"
	}
	return "see which one has the file open: fuser " + e.lock
}

// statusPatience is how long a bridge has to answer.
const statusPatience = 3 * time.Second

// statuses asks all bridges at a time. Those that do not answer are in the error.
func statuses(ctx context.Context, dir *share.Dir) ([]share.Status, error) {
	ids, err := dir.IDs()
	if err != nil {
		return nil, err
	}
	answers, failures := make([]*share.Status, len(ids)), make([]error, len(ids))
	var asking sync.WaitGroup
	for i, id := range ids {
		asking.Go(func() { answers[i], failures[i] = statusOf(ctx, dir, id) })
	}
	asking.Wait()
	var found []share.Status
	for _, answer := range answers {
		if answer != nil {
			found = append(found, *answer)
		}
	}
	slices.SortFunc(found, compareStatuses)
	return found, errors.Join(failures...)
}

// compareStatuses sorts by the targets' names, the bridge before its standby.
func compareStatuses(a, b share.Status) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.ID, b.ID))
}

// statusOf returns nil where there is no bridge.
func statusOf(ctx context.Context, dir *share.Dir, id string) (*share.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	for {
		status, err := dir.Status(ctx, id)
		if err == nil {
			return &status, nil
		}
		if !errors.Is(err, share.ErrNobody) {
			return nil, err
		}
		if held, err := dir.Held(id); err != nil || !held {
			return nil, err
		}
		// It may have begun just now, or only look whether the lock is free.
		if retry.Sleep(ctx, holderPause, nil) != nil {
			break
		}
	}
	return nil, &silentError{dir.LockPath(id)}
}

// A chosen is a host on the command line of status and down: all bridges to it,
// whatever flags they were started with.
type chosen struct {
	host    string
	id      string // of the target as the flags make it, or ""
	address string // resolved, or ""
}

// choose finds out what the hosts are called elsewhere. One that ssh cannot
// resolve may still be a bridge's name.
func choose(ctx context.Context, options sshfwd.Options, hosts []string) []chosen {
	all := make([]chosen, len(hosts))
	var resolving sync.WaitGroup
	for i, host := range hosts {
		all[i].host = host
		resolving.Go(func() { all[i].resolve(ctx, options) })
	}
	resolving.Wait()
	return all
}

func (c *chosen) resolve(ctx context.Context, options sshfwd.Options) {
	options.Destination, options.BatchMode = c.host, true
	config, err := sshfwd.Resolve(ctx, options)
	if err != nil {
		return
	}
	target, err := new(sshFlags).target(config)
	if err != nil {
		return
	}
	c.id, c.address = target.id, target.address
}

func (c *chosen) isMeant(status share.Status) bool {
	return status.Target == c.host || status.ID == c.host || c.address != "" && status.Address == c.address
}

// among returns those of the bridges that are meant.
func (c *chosen) among(all []share.Status) []share.Status {
	return slices.DeleteFunc(slices.Clone(all), func(s share.Status) bool { return !c.isMeant(s) })
}

// A noBridgeError says that there is none to this host.
type noBridgeError struct{ host string }

func (e *noBridgeError) Error() string { return fmt.Sprintf("no bridge to %q", e.host) }

// Hint says what to do.
func (e *noBridgeError) Hint() string {
	return "gpg-bridge status lists those that there are; gpg-bridge up starts one"
}
