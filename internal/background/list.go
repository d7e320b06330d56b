package background

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/share"
)

// statusPatience is how long a bridge has to begin to listen.
const statusPatience = 3 * time.Second

// Statuses asks all bridges concurrently. The error has those that do not answer.
func Statuses(ctx context.Context, dir *share.Dir) ([]share.Status, error) {
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
	slices.SortFunc(found, Compare)
	return found, errors.Join(failures...)
}

// Compare orders statuses by the targets' names, the bridge before its standby.
func Compare(a, b share.Status) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.ID, b.ID))
}

// statusOf returns nil where there is no bridge.
func statusOf(ctx context.Context, dir *share.Dir, id string) (*share.Status, error) {
	waiting, cancel := context.WithTimeout(ctx, statusPatience)
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
		// It may have just started, or only be checking whether the lock is free.
		if retry.Sleep(waiting, share.LookPause, nil) != nil {
			break
		}
	}
	return nil, dir.Silent(id)
}
