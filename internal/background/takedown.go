package background

import (
	"context"
	"errors"
	"fmt"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/serve"
	"gpg-bridge/internal/share"
)

// silentTries is how often a bridge that holds its lock is asked again.
const silentTries = 10

// TakeDown ends a target's bridge and its standby, which may change places
// meanwhile.
func TakeDown(ctx context.Context, dir *share.Dir, id string) error {
	ctx, cancel := context.WithTimeout(ctx, serve.EndTimeout)
	defer cancel()
	for tries := 0; ; tries++ {
		found := false
		for _, entry := range []string{standbyID(id), id} {
			_, err := dir.Stop(ctx, entry)
			switch {
			case err == nil:
				found = true
			case ctx.Err() != nil:
				return fmt.Errorf("a bridge does not end: %w", dir.Silent(entry))
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
		_ = retry.Sleep(ctx, share.LookPause, nil) // it may be about to listen
	}
}

// nobodyHolds returns an error if a process holds one of the ids and does not answer.
func nobodyHolds(dir *share.Dir, ids ...string) error {
	for _, id := range ids {
		if held, err := dir.Held(id); err != nil {
			return err
		} else if held {
			return dir.Silent(id)
		}
	}
	return nil
}

// OnlyTargets returns the targets of bridges and standbys with these IDs, each once.
func OnlyTargets(ids []string) []string {
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
