package bridge

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside/prepare"
)

// timing has the intervals and timeouts of a bridge.
type timing struct {
	interval time.Duration // between two looks at the path
	patience time.Duration // after which a look counts as one that found nobody
	closing  time.Duration // the patience of the last look, for which the user waits
	agent    time.Duration // between two looks at a local agent that cannot be used
	pause    time.Duration // the first pause after the host's own agent was stopped
	calm     time.Duration // after so long without trouble, the user is told of the next as of the first
	retake   time.Duration // for one attempt to take the path back: more than prepare.Timeout, whose error says what hangs
	room     time.Duration // a use of a key waits so long for room at the agent before it is refused
}

// defaultTiming has room for a slow link: a look takes two round trips.
func defaultTiming() timing {
	return timing{
		interval: 30 * time.Second, patience: 15 * time.Second, closing: 2 * time.Second,
		agent: 5 * time.Second, pause: 30 * time.Second, calm: time.Hour, retake: prepare.Timeout + 10*time.Second,
		room: 2 * time.Second,
	}
}

// What a look can find, apart from what the connection itself says.
var (
	errTaken = usertext.WithHint(
		"the socket on the host no longer leads here",
		hintTaken,
	)
	errGone = usertext.WithHint(
		"the socket on the host is gone, or nobody listens there any more",
		"find what removes it; it is made again unless it is one of --remote-socket",
	)
	errRetaken = usertext.WithHint(
		"the socket on the host no longer led here; it was taken back",
		"if this happens again, "+hintTaken,
	)
	errRetakenFromOther = usertext.WithHint(
		"another connection had taken the socket on the host; it was taken back when that ended",
		"if it was not yours, find who connects to this account with gpg-bridge ssh --takeover, or with ssh -R",
	)
	errUnanswered = usertext.WithHint(
		"the host did not answer when its socket was looked at",
		hintNetwork,
	)
	errRetaking = usertext.WithHint(
		"the socket on the host no longer leads here; it is being taken back",
		"if this happens again, "+hintTaken,
	)
	errNotRetaken = usertext.WithHint(
		"the socket on the host no longer leads here, and the host did not answer when it was to be made again",
		hintNetwork,
	)
)

const hintNetwork = "check the network; ServerAliveInterval in ssh_config ends a dead connection"

const hintTaken = "find what starts gpg-agent on the host: systemctl --user mask gpg-agent.socket is the usual cure"

// isLoss reports whether a look found that the path does not lead here.
func isLoss(err error) bool { return errors.Is(err, errTaken) || errors.Is(err, errGone) }

// watchBoth watches the path and the agent until ctx ends.
func (b *Bridge) watchBoth(ctx context.Context) {
	defer close(b.watched)
	var agent sync.WaitGroup
	agent.Go(func() { b.watchAgent(ctx) })
	b.watch(ctx)
	agent.Wait()
}

// watch verifies the path now, at every interval and when Look is called, until ctx ends. If
// another took the path, as an agent or a user manager does that was started on the host, it
// is taken back: see retake.
func (b *Bridge) watch(ctx context.Context) {
	b.look(ctx)
	close(b.verified)
	ticker := time.NewTicker(b.options.timing.interval)
	defer ticker.Stop()
	used := usage{times: b.used.Load(), at: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.lookNow:
			b.retakes.held = time.Time{}
		case <-ticker.C:
			used.note(b.used.Load())
			if b.options.LookFor > 0 && time.Since(used.at) > b.options.LookFor {
				continue
			}
		}
		b.look(ctx)
	}
}

// Look has the path and the agent looked at now, since somebody is about to use the bridge.
// It does not wait.
func (b *Bridge) Look() {
	signal(b.lookNow)
	signal(b.askAgentNow)
	if second := b.login.up(); second != nil {
		second.Look()
	}
}

// signal leaves one signal in the channel.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// usage is when the agent was last seen to have been used. The looks at the path, our own and
// other bridges', do not count.
type usage struct {
	times uint64
	at    time.Time
}

func (u *usage) note(times uint64) {
	if times != u.times {
		u.times, u.at = times, time.Now()
	}
}

// look verifies the path, and takes it back if it is lost. It believes in a loss only if it
// has seen it twice: the answer may have failed to come because the link died, and the second
// attempt shows that.
func (b *Bridge) look(ctx context.Context) {
	err := b.verify(ctx, b.options.timing.patience)
	if isLoss(err) && !b.taken {
		err = b.verify(ctx, b.options.timing.patience)
	}
	if ctx.Err() != nil {
		return
	}
	if !isLoss(err) {
		b.taken = false
		b.notePath(err)
		return
	}
	b.noteLossBegins()
	if err = b.retake(ctx, err); ctx.Err() == nil {
		b.noteLoss(err)
	}
}

// Verified waits for the first verification and returns what the latest one found.
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

// errBusy says that the path was not seen to lead here, but that a client came through it.
var errBusy = errors.New("a client has come, and not the one that looks")

// verify is prove, but gives the path the benefit of the doubt on errBusy: most likely that
// client was our own connection, which waits for a free session or a slow local agent.
func (b *Bridge) verify(ctx context.Context, patience time.Duration) error {
	err := b.prove(ctx, patience)
	if errors.Is(err, errBusy) {
		return nil
	}
	return err
}

// prove opens the path from the host's side, as a gpg there would, and waits
// for one of our own sessions to see the comment that is sent through it.
func (b *Bridge) prove(ctx context.Context, patience time.Duration) error {
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
	doubt := time.NewTimer(min(mostDoubt, patience/4))
	defer doubt.Stop()
	bye := make(chan struct{})
	over := speak(conn, expected.Comment, bye)
	for {
		select {
		case <-expected.Seen:
			b.proven = true
			return nil
		case <-doubt.C:
			close(bye)
		case err := <-over:
			if isClosed(expected.Seen) {
				continue
			}
			if !errors.Is(err, io.EOF) {
				return b.notReached(waiting, err)
			}
			return b.notSeen(ctx, before)
		case <-waiting.Done():
			return b.notSeen(ctx, before)
		}
	}
}

// mostDoubt is how long the comment may take before whoever has the path is sent BYE: one that
// closes then, while no session of ours has seen the comment, is not this bridge.
const mostDoubt = time.Second

// speak sends the comment, and BYE when bye is closed. over gets io.EOF when the other side has
// closed, or the *link.DialError of a link that learns only now that nobody listens. On a dead
// link its goroutines may last as long as the link.
func speak(conn io.ReadWriter, comment []byte, bye <-chan struct{}) (over <-chan error) {
	closed, done := make(chan error, 1), make(chan struct{})
	go func() {
		if _, err := conn.Write(comment); err != nil {
			return
		}
		select {
		case <-bye:
			_, _ = conn.Write([]byte("BYE\n"))
		case <-done:
		}
	}()
	go func() {
		defer close(done)
		_, err := io.Copy(io.Discard, conn)
		var nobody *link.DialError
		switch {
		case err == nil:
			closed <- io.EOF
		case errors.As(err, &nobody):
			closed <- err
		}
	}()
	return closed
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// notSeen says why the comment did not come.
func (b *Bridge) notSeen(ctx context.Context, arrivedBefore uint64) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.arrived.Load() != arrivedBefore:
		return errBusy
	}
	return errTaken
}

// notReached says what err, of opening the path, means. If opening it has succeeded before,
// nobody listens there any more. If not, the server may forbid it (AllowStreamLocalForwarding
// remote), which looks the same; then, if something is there at two looks, the path is taken
// to be ours from now on.
func (b *Bridge) notReached(ctx context.Context, err error) error {
	var refused *link.DialError
	switch {
	case ctx.Err() != nil, errors.Is(err, link.ErrUnanswered):
		return errUnanswered
	case !errors.As(err, &refused):
		return err
	case b.proven:
		return errGone
	}
	b.options.Log.Debug("the socket could not be opened from the host's side", "error", err)
	b.blind = refused.Prohibited || refused.Unsupported || b.options.RemoteSocket != ""
	if b.blind {
		return nil
	}
	switch why := prepare.ExplainRefusal(ctx, b.link, b.Path()); refusalOf(why) {
	case prepare.RefusedExists:
		if b.doubted { // it was there at the look before, too
			b.blind = true
			return nil
		}
		b.doubted = true
		return errTaken
	case prepare.RefusedUnknown:
		return why
	}
	return errGone
}

// refusalOf returns why a forward was refused.
func refusalOf(err error) prepare.Refusal {
	var refused *prepare.RefusedError
	if errors.As(err, &refused) {
		return refused.Refusal
	}
	return prepare.RefusedUnknown
}
