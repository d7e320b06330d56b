package sshfwd

import (
	"context"
	"sync"

	"gpg-bridge/internal/link"
)

// unansweredOpens counts the channels that openChannel has given up waiting for, and that
// the server may still open or refuse. The zero value has none.
type unansweredOpens struct {
	mu   sync.Mutex
	n    int           // below 0 for a moment if the answer comes just as openChannel gives up
	none chan struct{} // closed when n is 0 again
}

// gaveUp counts a channel whose opening is not waited for any more.
func (o *unansweredOpens) gaveUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n++; o.n == 1 {
		o.none = make(chan struct{})
	}
}

// answered notes that the server has opened or refused one of them.
func (o *unansweredOpens) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 {
		close(o.none)
	}
}

// wait returns when there are none, or ended is closed. The error is link.ErrUnanswered if
// ctx ends first.
func (o *unansweredOpens) wait(ctx context.Context, ended <-chan struct{}) error {
	o.mu.Lock()
	n, none := o.n, o.none
	o.mu.Unlock()
	if n <= 0 {
		return nil
	}
	select {
	case <-none:
	case <-ended:
	case <-ctx.Done():
		return link.ErrUnanswered
	}
	return nil
}
