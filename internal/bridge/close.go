package bridge

import (
	"context"
	"errors"

	"gpg-bridge/remoteside"
)

// Close takes the bridge down: if the path on the host is still ours, the
// forward is cancelled and the socket removed, which sshd never does. It waits
// for all sessions and goroutines, no longer than ctx on a link that is dead.
func (b *Bridge) Close(ctx context.Context) error {
	b.stop()
	b.watching.Wait()
	ours := b.verify(ctx) == nil
	b.mu.Lock()
	forward := b.forward
	b.mu.Unlock()
	err := forward.Close(ctx)
	if ours && b.options.RemoteSocket == "" {
		err = errors.Join(err, remoteside.RemoveSocket(ctx, b.link, b.path))
	}
	return err
}

// hintedError is an error with what to do about it.
type hintedError struct{ text, hint string }

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Hint() string  { return e.hint }
