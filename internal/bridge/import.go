package bridge

import (
	"context"
	"errors"
	"sync"
	"time"

	"gpg-bridge/remoteside/prepare"
)

// importPatience is how long the start of a bridge, complete otherwise, waits for the import
// of the public keys, which then goes on in the background. An import usually takes a tenth
// of a second. It is less than a session waits for its bridge.
const importPatience = time.Second

// importClosePatience is how long closing a bridge waits for the import.
const importClosePatience = 2 * time.Second

var (
	errImportsEnded = errors.New("the bridge is closed")
	errPreparedAnew = errors.New("the host is prepared anew")
)

// imports are the preparations of hosts that may still be importing keys when the
// bridge is up. There is one at a time: a new one ends the one before, which a host
// could otherwise keep open for ever, with its channel.
type imports struct {
	parent  context.Context
	cancel  context.CancelCauseFunc
	waiting sync.WaitGroup
	latest  context.CancelCauseFunc // of the last one; nil: none yet. Owned by begin
}

func newImports(ctx context.Context) *imports {
	parent, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	return &imports{parent: parent, cancel: cancel}
}

// finish waits up to importClosePatience for an import that is under way, and then ends it:
// the session was shorter than the import on a slow host, or the import hangs.
func (i *imports) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, importClosePatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { i.cancel(errImportsEnded) })()
	i.waiting.Wait()
	i.cancel(errImportsEnded)
}

// end ends what is under way, and waits for it.
func (i *imports) end() {
	i.cancel(errImportsEnded)
	i.waiting.Wait()
}

// A preparing is the context of one preparation. It ends with the imports, and, until it
// is detached, with the context in which it was begun.
type preparing struct {
	context.Context
	cancel context.CancelCauseFunc
	detach func() bool
}

func (i *imports) begin(ctx context.Context) preparing {
	if i.latest != nil {
		i.latest(errPreparedAnew)
	}
	running, cancel := context.WithCancelCause(i.parent)
	i.latest = cancel
	return preparing{running, cancel, context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })}
}

// awaitImport returns when the preparation has ended, or after importPatience; then a
// goroutine goes on waiting. Either way the user is told of a failure, unless the start of
// the bridge was cancelled.
func (b *Bridge) awaitImport(running preparing, preparation *prepare.Preparation) {
	done := make(chan struct{})
	b.imports.waiting.Go(func() {
		defer close(done)
		defer running.cancel(nil)
		imported, err := preparation.Wait()
		if cause := context.Cause(running); err != nil && (cause == nil || errors.Is(cause, errImportsEnded)) {
			b.options.Warn(err)
		}
		b.options.Log.Debug("host prepared", "socket", preparation.Socket, "imported", imported)
	})
	patience := time.NewTimer(importPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
	}
}
