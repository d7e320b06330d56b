package bridge

import (
	"context"
	"errors"
	"io"
	"sync"

	"gpg-bridge/remoteside"
)

// Close takes the bridge down: if the path on the host is still ours, the
// forward is cancelled and the socket removed, which sshd never does. It waits
// for all sessions and goroutines, no longer than ctx on a link that is dead.
func (b *Bridge) Close(ctx context.Context) error {
	b.stop()
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

// closeAndRemove makes three round trips: the shell that removes the socket is
// started while the path is verified, and gets its script, in one flight with
// the cancel, only if the path is ours.
func (b *Bridge) closeAndRemove(ctx context.Context, forward Forward, path string) error {
	ours := sync.OnceValue(func() bool { return b.verify(ctx, b.options.timing.closing) == nil })
	var removal error
	var removing sync.WaitGroup
	removing.Go(func() { removal = remoteside.RemoveSocket(ctx, heldBack{b.link, ours}, path) })
	remove := ours()
	err := forward.Close(ctx)
	removing.Wait()
	if remove {
		err = errors.Join(err, removal)
	}
	return err
}

// heldBack is a host whose commands get their input when go has said yes, and
// none when it has said no.
type heldBack struct {
	remoteside.Host
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

// closeBlindly takes the forward away where nobody can tell whose the path is,
// and then does what the next bridge would: a preparation removes a socket at
// which nobody answers, and leaves any other.
func (b *Bridge) closeBlindly(ctx context.Context, forward Forward) error {
	if err := forward.Close(ctx); err != nil {
		return err
	}
	preparation, err := remoteside.Prepare(ctx, b.link, remoteside.PrepareOptions{})
	if err == nil {
		_, err = preparation.Wait()
	}
	var held *remoteside.HeldError
	var own *remoteside.OwnAgentError
	if errors.As(err, &held) || errors.As(err, &own) {
		return nil
	}
	return err
}

// hintedError is an error with what to do about it.
type hintedError struct{ text, hint string }

func (e *hintedError) Error() string { return e.text }
func (e *hintedError) Hint() string  { return e.hint }
