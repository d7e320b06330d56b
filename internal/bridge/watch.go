package bridge

import (
	"context"
	"errors"
	"io"
	"time"

	"gpg-bridge/remoteside"
	"gpg-bridge/sshfwd"
)

// timing is how often the path is looked after, and how long one look may take
// until it counts as one that found nobody.
type timing struct {
	interval time.Duration
	patience time.Duration
	closing  time.Duration // patience of the last look, for which the user waits
}

// defaultTiming: a look is two round trips on a slow link, after up to 10
// seconds in which the session waits for an agent that hangs.
func defaultTiming() timing {
	return timing{interval: 30 * time.Second, patience: 15 * time.Second, closing: 2 * time.Second}
}

// What a look can find, apart from what the connection itself says.
var (
	errTaken error = &hintedError{
		text: "the socket on the host no longer leads here",
		hint: hintTaken + "; then connect again",
	}
	errRetaken error = &hintedError{
		text: "the socket on the host no longer led here; it was taken back",
		hint: "if this happens again, " + hintTaken,
	}
	errUnanswered error = &hintedError{
		text: "the host did not answer when its socket was looked at",
		hint: "check the network; ServerAliveInterval in ssh_config ends a dead connection",
	}
)

const hintTaken = "find what starts gpg-agent on the host: systemctl --user mask gpg-agent.socket is the usual cure"

// watch verifies the path, now and in every interval, until ctx ends. A path
// that another took, an agent that was started on the host or a new user
// manager, is taken back once, and the user told.
func (b *Bridge) watch(ctx context.Context) {
	defer close(b.watched)
	b.look(ctx)
	close(b.verified)
	ticker := time.NewTicker(b.options.timing.interval)
	defer ticker.Stop()
	used := usage{arrived: b.arrived.Load(), at: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			used.note(b.arrived.Load())
			if b.options.LookFor > 0 && time.Since(used.at) > b.options.LookFor {
				continue
			}
			b.look(ctx)
			used.arrived = b.arrived.Load()
		}
	}
}

// usage is when a client other than our own was last seen to have come.
type usage struct {
	arrived uint64
	at      time.Time
}

func (u *usage) note(arrived uint64) {
	if arrived != u.arrived {
		u.arrived, u.at = arrived, time.Now()
	}
}

// look believes in a loss when it has seen it twice: an answer that did not
// come may be a link that died meanwhile, and that shows in the second.
func (b *Bridge) look(ctx context.Context) {
	err := b.verify(ctx, b.options.timing.patience)
	if errors.Is(err, errTaken) {
		err = b.verify(ctx, b.options.timing.patience)
	}
	if ctx.Err() != nil {
		return
	}
	b.taken = errors.Is(err, errTaken)
	if b.taken && b.mayRetake() {
		err = b.retake(ctx)
		b.taken = err != nil
	}
	if ctx.Err() == nil && b.noteLost(err) {
		b.options.Warn(err)
	}
}

// noteLost reports whether the loss is news.
func (b *Bridge) noteLost(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := err != nil && b.lost == nil
	b.lost = err
	return news
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
func (b *Bridge) verify(ctx context.Context, patience time.Duration) error {
	if b.blind {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	expected := b.server.Expect()
	defer expected.Drop()
	before := b.arrived.Load()
	conn, err := b.link.DialUnix(waiting, b.Path())
	if err != nil {
		return b.notReached(waiting, err)
	}
	defer conn.Close()
	select {
	case <-expected.Seen:
	case err := <-send(conn, expected.Comment):
		return b.notReached(waiting, err)
	case <-waiting.Done():
		return b.notSeen(ctx, before)
	}
	b.proven = true
	return nil
}

// send sends the comment, and tells of a link that opens a socket at once and only
// then learns that nobody listens. A dead link may hold its goroutine for as long
// as it lives.
func send(conn io.ReadWriter, comment []byte) (refused <-chan error) {
	answer := make(chan error, 1)
	go func() {
		_, _ = conn.Write(comment)
		_, err := conn.Read(make([]byte, 1))
		var nobody *sshfwd.DialUnixError
		if errors.As(err, &nobody) {
			answer <- err
		}
	}()
	return answer
}

// notSeen tells what it means that the comment did not come. A connection that
// did come since the path was opened was most likely the one: it waits for a
// free session, or for a local agent that is slow.
func (b *Bridge) notSeen(ctx context.Context, arrivedBefore uint64) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.arrived.Load() != arrivedBefore:
		return nil
	}
	return errTaken
}

// notReached tells what it means that the path could not be opened. If it could
// once, then nobody listens there any more. If not, the server may forbid it
// (AllowStreamLocalForwarding remote), which looks the same; then the path is
// believed from now on if something is there.
func (b *Bridge) notReached(ctx context.Context, err error) error {
	var refused *sshfwd.DialUnixError
	switch {
	case ctx.Err() != nil:
		return errUnanswered
	case !errors.As(err, &refused):
		return err
	case b.proven:
		return errTaken
	}
	b.options.Log.Debug("the socket could not be opened from the host's side", "error", err)
	if b.blind = refused.Prohibited || refused.Unsupported || b.options.RemoteSocket != ""; b.blind {
		return nil
	}
	switch why := remoteside.ExplainRefusal(ctx, b.link, b.Path()); refusalOf(why) {
	case remoteside.RefusedExists:
		b.blind = true
		return nil
	case remoteside.RefusedUnknown:
		return why
	}
	return errTaken
}

// refusalOf is why a forward would be refused.
func refusalOf(err error) remoteside.Refusal {
	var refused *remoteside.RefusedError
	if errors.As(err, &refused) {
		return refused.Refusal
	}
	return remoteside.RefusedUnknown
}

func (b *Bridge) mayRetake() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	may := !b.retaken && b.options.RemoteSocket == ""
	b.retaken = true
	return may
}

// retake prepares and forwards anew, and tells the user. The live forward of
// somebody else is left alone: they wanted it.
func (b *Bridge) retake(ctx context.Context) error {
	err := b.prepareAndListen(ctx, b.prepareOptions(Finding{Err: b.local.tryAgent(ctx)}))
	if err == nil {
		err = b.verify(ctx, b.options.timing.patience)
	}
	if err == nil {
		b.options.Warn(errRetaken)
	}
	return err
}
