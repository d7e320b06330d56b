package bridge

import (
	"context"
	"errors"
	"io"
	"sync"

	"gpg-bridge/internal/link"
	"gpg-bridge/remoteside/prepare"
)

// Close takes the bridge down: if the path on the host is still ours, the
// forward is cancelled and the socket removed, which sshd never does. It waits
// for all sessions and goroutines, no longer than ctx on a link that is dead.
func (b *Bridge) Close(ctx context.Context) (err error) {
	b.stop()
	defer b.settlePrompts(ctx) // last: neither this bridge nor the login's has clients then
	var both sync.WaitGroup
	var loginErr error
	both.Go(func() { b.imports.finish(ctx) })
	both.Go(func() { loginErr = b.login.close(ctx) })
	defer func() {
		both.Wait()
		err = errors.Join(err, loginErr)
	}()
	select {
	case <-b.watched:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	path, forward := b.current()
	switch {
	case b.options.RemoteSocket != "", b.taken:
		return forward.Close(ctx)
	case b.blind:
		return b.closeBlindly(ctx, forward)
	}
	return b.closeAndRemove(ctx, forward, path)
}

// settlePrompts does nothing for the second bridge, a login's, which shares the first one's
// prompts.
func (b *Bridge) settlePrompts(ctx context.Context) {
	if b.options.prompts == nil {
		b.prompts.settle(ctx)
	}
}

// closeAndRemove makes three round trips. The shell that removes the socket is started while
// the path is verified. It gets its script, together with the cancel request, only if the path
// is proved to be ours: leaving a socket behind costs nothing, but removing another bridge's
// costs a signature.
func (b *Bridge) closeAndRemove(ctx context.Context, forward link.Forward, path string) error {
	ours := sync.OnceValue(func() bool { return b.prove(ctx, b.options.timing.closing) == nil })
	var removal error
	var removing sync.WaitGroup
	removing.Go(func() { removal = prepare.RemoveSocket(ctx, heldBack{b.link, ours}, path) })
	remove := ours()
	err := forward.Close(ctx)
	removing.Wait()
	if remove {
		err = errors.Join(err, removal)
	}
	return err
}

// heldBack is a host whose commands wait for their input until release has returned: they
// get it if that was true, and none otherwise.
type heldBack struct {
	prepare.Host
	release func() bool
}

func (h heldBack) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	return h.Host.Run(ctx, command, heldReader{stdin, h.release}, stdout, stderr)
}

type heldReader struct {
	io.Reader
	release func() bool
}

func (r heldReader) Read(p []byte) (int, error) {
	if !r.release() {
		return 0, io.EOF
	}
	return r.Reader.Read(p)
}

// closeBlindly closes the forward where it cannot be found out whose the path is, and then
// prepares the host as the next bridge would: that removes a socket at which nobody answers,
// and leaves any other.
func (b *Bridge) closeBlindly(ctx context.Context, forward link.Forward) error {
	if err := forward.Close(ctx); err != nil {
		return err
	}
	preparation, err := prepare.Prepare(ctx, b.link, prepare.Options{Home: b.options.home})
	if err == nil {
		_, err = preparation.Wait()
	}
	var held *prepare.HeldError
	var own *prepare.OwnAgentError
	if errors.As(err, &held) || errors.As(err, &own) {
		return nil
	}
	return err
}
