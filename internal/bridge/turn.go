package bridge

import (
	"context"
	"sync"
)

// A turn lets in one caller at a time. Unlike with a mutex, a caller's wait can be ended. The
// zero value is ready.
type turn struct {
	once  sync.Once
	taken chan struct{} // holds one while somebody is in
}

// take waits for the turn, no longer than ctx. The caller then calls leave.
func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() { t.taken = make(chan struct{}, 1) })
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) leave() { <-t.taken }
