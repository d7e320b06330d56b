package bridge

import (
	"context"
	"errors"
	"time"

	"gpg-bridge/remoteside"
	"gpg-bridge/sshfwd"
)

const (
	// watchInterval is how often the path is looked after.
	watchInterval = 30 * time.Second

	// verifyTimeout bounds one look: three round trips on a slow link, after
	// up to 10 seconds in which the session waits for an agent that hangs.
	verifyTimeout = 15 * time.Second
)

// errTaken says that the path on the host leads somewhere else.
var errTaken = errors.New("the socket on the host leads to another agent")

// watch verifies the path, now and every 30 seconds, until ctx ends. A path
// that another took, an agent that was started on the host or a new user
// manager, is taken back once, and the user told.
func (b *Bridge) watch(ctx context.Context) {
	b.look(ctx)
	close(b.verified)
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			b.look(ctx)
		}
	}
}

func (b *Bridge) look(ctx context.Context) {
	err := b.verify(ctx)
	if errors.Is(err, errTaken) && ctx.Err() == nil && b.mayRetake() {
		b.options.Warn(errRetaking)
		err = b.retake(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	news := err != nil && b.lost == nil
	b.lost = err
	b.mu.Unlock()
	if news {
		b.options.Warn(err)
	}
}

// Verified waits for the first verification and returns what it found, or what
// a later one did.
func (b *Bridge) Verified(ctx context.Context) error {
	select {
	case <-b.verified:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// verify opens the path from the host's side, as a gpg there would, and waits
// for one of our own sessions to see the comment that is sent through it.
func (b *Bridge) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	expected := b.server.Expect()
	defer expected.Drop()
	conn, err := b.link.DialUnix(ctx, b.path)
	if err != nil {
		return b.notReached(ctx, err)
	}
	defer conn.Close()
	if _, err := conn.Write(expected.Comment); err != nil {
		return err
	}
	select {
	case <-expected.Seen:
		return nil
	case <-ctx.Done():
		return errTaken
	}
}

// notReached tells what it means that the path could not be opened: the socket
// is gone, or the server forbids to open it (AllowStreamLocalForwarding
// remote), which looks the same. Then it is believed: the socket is there.
func (b *Bridge) notReached(ctx context.Context, err error) error {
	var refused *sshfwd.DialUnixError
	if !errors.As(err, &refused) {
		return err
	}
	b.options.Log.Debug("the socket could not be opened from the host's side", "error", err)
	var found *remoteside.RefusedError
	if refused.Prohibited || refused.Unsupported || b.options.RemoteSocket != "" ||
		errors.As(remoteside.ExplainRefusal(ctx, b.link, b.path), &found) && found.Refusal == remoteside.RefusedExists {
		return nil
	}
	return errTaken
}

func (b *Bridge) mayRetake() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	may := !b.retaken && b.options.RemoteSocket == ""
	b.retaken = true
	return may
}

// retake prepares and forwards the same path anew.
func (b *Bridge) retake(ctx context.Context) error {
	b.mu.Lock()
	forward := b.forward
	b.mu.Unlock()
	if err := forward.Close(ctx); err != nil {
		b.options.Log.Debug("cancel of the lost forward", "error", err)
	}
	if err := b.prepareAndListen(ctx, Finding{Err: b.local.tryAgent(ctx)}); err != nil {
		return err
	}
	return b.verify(ctx)
}

var errRetaking error = &hintedError{
	text: "another agent took the socket on the host; taking it back",
	hint: "if this happens again, find what starts gpg-agent there: systemctl --user mask gpg-agent.socket is the usual cure",
}
