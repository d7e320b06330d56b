package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gpg-bridge/internal/notice"
	"gpg-bridge/internal/retry"
	"gpg-bridge/remoteside/prepare"
)

// mostPause is the longest pause before the host's own agent is evicted again, and
// mostHeldPause the longest between two checks whether another's live forward has ended.
const (
	mostPause     = 10 * time.Minute
	mostHeldPause = 5 * time.Minute
)

// retakes is what is known of attempts to take the path back. It is owned by watch.
type retakes struct {
	pause retry.Backoff
	last  time.Time // when the path was last taken back; zero: never
	evict time.Time // the host's own agent is left alone until then

	heldPause retry.Backoff
	held      time.Time // until then another's forward is believed to live, as long as somebody answers
	by        error     // whose it is, or was at the last look; nil: not known

	trouble notice.Trouble[pathNews] // something is wrong with the path
	said    bool                     // the user was told of the loss that lasts
}

// pathNews is what the user is told about the path.
type pathNews uint8

const (
	newsLost    pathNews = iota // it was lost, and not taken back
	newsRetaken                 // it was taken back
	newsSilent                  // a look found something else to be wrong
)

// retake prepares the host and forwards anew, however often the path is lost: a bridge lives
// for weeks. A free path is taken at once. Somebody else's live forward is wanted there, and
// is left alone until it ends. The host's own agent is stopped, but when it comes back, only
// after a pause, which grows: whatever starts it may do so as soon as it is gone. It returns
// why the path is not ours.
func (b *Bridge) retake(ctx context.Context, lost error) error {
	t := &b.retakes
	t.pause.HeldSince(t.last)
	if time.Now().Before(t.held) && errors.Is(lost, errTaken) {
		return t.by // to ask again, the host would have to run a script
	}
	err := b.takePath(ctx, lost)
	t.held = time.Time{}
	var own *prepare.OwnAgentError
	var held *prepare.HeldError
	switch {
	case err == nil:
		t.last = time.Now()
		t.evict = t.last.Add(t.pause.Next())
		t.heldPause.Reset()
	case errors.As(err, &held):
		t.held, t.by = time.Now().Add(t.heldPause.Next()), err
	case errors.As(err, &own) && b.agentErr() == nil:
		t.by = nil
		return &ownAgentTookError{own, time.Until(t.evict)}
	}
	return err
}

// retaken says that the path was taken back, and from whom, if another connection had it
// meanwhile.
func (t *retakes) retaken() error {
	if t.by != nil {
		return errRetakenFromOther
	}
	return errRetaken
}

// takePath tries once to take the path back, and keeps taken true as long as the path may be
// somebody else's. If the host does not answer, the attempt ends, but not the watch.
func (b *Bridge) takePath(ctx context.Context, lost error) error {
	b.taken = true
	bounded, cancel := context.WithTimeout(ctx, b.options.timing.retake)
	err := b.forwardAgain(bounded, lost)
	overdue := bounded.Err() != nil && ctx.Err() == nil
	cancel()
	switch {
	case err != nil && overdue:
		return errNotRetaken
	case err != nil:
		return err
	}
	b.taken = false
	err = b.verify(ctx, b.options.timing.patience)
	b.taken = isLoss(err)
	return err
}

func (b *Bridge) forwardAgain(ctx context.Context, lost error) error {
	if socket := b.options.RemoteSocket; socket != "" {
		if !errors.Is(lost, errGone) || b.listen(ctx, socket) != nil {
			return lost // with RemoteSocket nothing is run on the host, not even to see who has it
		}
		return nil
	}
	options := b.prepareOptions(Finding{Err: b.agentErr()})
	options.Evict = options.Evict && time.Now().After(b.retakes.evict)
	return b.prepareAndListen(ctx, options)
}

// noteLossBegins notes a loss before the path is taken back, which may take long. noteLoss
// tells the user of the result.
func (b *Bridge) noteLossBegins() {
	b.retakes.trouble.Shows(b.options.timing.calm)
	if !b.taken {
		b.taken = true
		b.setPath(errRetaking)
	}
}

// noteLoss notes what became of a loss, and tells the user: once that the path was taken back,
// and once that it was not, and again only after a long time without trouble. If they were
// told of a loss, they are also told of its end.
func (b *Bridge) noteLoss(err error) {
	t := &b.retakes
	b.setPath(err)
	switch {
	case err == nil:
		if t.trouble.First(newsRetaken) || t.said {
			b.options.Warn(t.retaken())
		}
		t.said, t.by = false, nil
	case !t.said && t.trouble.First(newsLost):
		t.said = true
		b.options.Warn(err)
	}
}

// notePath notes a look that found no loss. If it found something else to be wrong, it tells
// the user: once, and again only after a long time without trouble.
func (b *Bridge) notePath(err error) {
	t := &b.retakes
	t.said = false
	news := b.setPath(err)
	if err == nil {
		return
	}
	t.trouble.Shows(b.options.timing.calm)
	if news && t.trouble.First(newsSilent) {
		b.options.Warn(err)
	}
}

// ownAgentTookError says that the host's own agent has taken the path again, and how long
// that agent is left alone.
type ownAgentTookError struct {
	own  *prepare.OwnAgentError
	rest time.Duration
}

func (e *ownAgentTookError) Error() string {
	return fmt.Sprintf("the host's own agent (process %d) has taken the socket again; it is stopped %s",
		e.own.PID, inAbout(e.rest))
}

// Hint says what to do.
func (e *ownAgentTookError) Hint() string { return hintTaken }

func (e *ownAgentTookError) Unwrap() error { return e.own }

// inAbout puts a delay into words.
func inAbout(d time.Duration) string {
	switch {
	case d <= time.Second:
		return "soon"
	case d < time.Minute:
		return fmt.Sprintf("in %d s", int(d.Seconds()))
	}
	return fmt.Sprintf("in %d min", int(d.Round(time.Minute).Minutes()))
}
