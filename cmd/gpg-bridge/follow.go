package main

import (
	"context"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
)

// followOther waits while another process is the target's bridge, and returns
// why it is not any more. up is told whenever it is up; makesWay says of another
// status whether that bridge is to be asked to make way.
func followOther(ctx context.Context, dir *share.Dir, id string, up func(share.Status), makesWay func(share.Status) bool) error {
	lease, err := dir.Lease(ctx, id)
	if err != nil {
		_ = retry.Sleep(ctx, holderPause, nil) // it is about to listen, or to end
		return err
	}
	defer lease.Close()
	for {
		status, err := lease.Next()
		switch {
		case err != nil:
			return err
		case status.State == share.Up:
			up(status)
		case status.State == share.Stopping: // Next tells when it has
		case makesWay(status):
			if _, err := dir.Yield(ctx, id); err != nil {
				return err
			}
		}
	}
}
