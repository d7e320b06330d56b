package serve

import (
	"sync"

	"gpg-bridge/internal/notice"
)

// refusals bounds how often the user is told of refused prompts, of which a host may cause
// hundreds in a second. The zero value is ready.
type refusals struct {
	mu      sync.Mutex
	busy    bool // say has not returned
	seldom  notice.Limit
	telling sync.WaitGroup
}

// tell calls say in a goroutine, since it may have to wait for the terminal. If say was last
// called less than notice.Every ago, or has not returned, tell does nothing and reports false.
// The owner waits for telling.
func (r *refusals) tell(say func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || !r.seldom.Allow(notice.Every) {
		return false
	}
	r.busy = true
	r.telling.Go(func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.busy = false
		}()
		say()
	})
	return true
}
