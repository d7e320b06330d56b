package bridge

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gpg-bridge/internal/pinentry"
	"gpg-bridge/remoteside"
)

const (
	// firstPromptLook is the delay between an event and the first look at the agent: a
	// use of a key that ends sooner needs none. lastPromptLook is the longest time
	// between two looks.
	firstPromptLook = 500 * time.Millisecond
	lastPromptLook  = 10 * time.Second

	// nextPromptLook is the delay after a prompt was cancelled: the agent opens the next
	// one at once if more clients that have gone are queued behind it.
	nextPromptLook = 50 * time.Millisecond

	// abandonedPatience bounds one look.
	abandonedPatience = 5 * time.Second

	// mostFailedLooks is how many looks in a row may fail before the uses that were left count
	// as over: the host must not be refused for ever because the agent cannot be looked at.
	mostFailedLooks = 8

	// settlePatience bounds the last look, at the prompts that clients have left open when
	// the bridge is closed.
	settlePatience = 3 * time.Second
)

// abandonedPrompts looks after the prompts that the bridge's clients leave open when they go away
// before the agent has answered. A gpg-agent older than 2.3 keeps such a prompt until it is
// answered, then uses the key although nobody gets the result. Meanwhile every other use of a
// card, or of a key that needs its passphrase, waits behind it.
//
// The agent is looked at only while an answer is missing for longer than a signature takes.
// A prompt is cancelled where certainly nobody waits for it; else the user is told.
//
// It observes the bridge's sessions, and is called before each use of a key for which the
// agent may ask its user (remoteside.Config.Asking).
type abandonedPrompts struct {
	remoteside.NopObserver

	see      func(context.Context, *scene) error // see seeAgent
	now      func() pinentry.Instant
	patience time.Duration // timing.room
	mayEnd   bool
	warn     func(error)
	changed  func() // called when isOpen has changed; may be nil
	stats    *Stats // may be nil
	gate     *gate
	log      *slog.Logger

	wake chan struct{}
	stop context.CancelFunc
	work sync.WaitGroup

	strays *strayPrompts // nil where the system does not tell of prompts

	failedLooks int // looks that have failed in a row; owned by run, and after it by settle

	mu      sync.Mutex
	pending []pendingUse
	left    []pinentry.Instant // see scene
	leaving int                // uses in pending whose client has sent its last byte
	room    chan struct{}      // closed, and set to nil, when isFull no longer holds; nil: nobody waits
	open    bool               // see isOpen
	told    bool               // the user was told of the prompt that is open
	waiter  bool               // the user was told that somebody waits behind it
	refused bool               // a use was refused since the last look
	news    reminders          // how often the user is told of what
}

// followAbandoned starts the goroutines; the caller must call settle.
func followAbandoned(ctx context.Context, local *Local, options Options) *abandonedPrompts {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &abandonedPrompts{
		see: seeAgent(local.Agent), now: pinentry.Now, patience: options.timing.room, mayEnd: !local.Agent.AllowUnrestricted,
		warn: options.Warn, changed: options.Changed, stats: options.Stats, gate: &local.gate, log: options.Log,
		wake: make(chan struct{}, 1), stop: stop,
	}
	if p.left = p.stats.leftOpen(); len(p.left) > 0 {
		p.gate.hold(len(p.left))
		p.wake <- struct{}{}
	}
	p.work.Go(func() { p.run(ctx) })
	if pinentry.EndsPrompts() && p.mayEnd {
		p.strays = newStrayPrompts(local, p.isPending, options.Log)
		p.work.Go(func() { p.strays.run(ctx) })
	}
	return p
}

// settle stops the goroutines. If uses of keys are left whose clients have gone, it takes
// one more look, and hands the rest on to the next bridge.
func (p *abandonedPrompts) settle(ctx context.Context) {
	p.stop()
	p.work.Wait()
	if s := p.situation(); len(s.left) > 0 {
		ctx, cancel := context.WithTimeout(ctx, settlePatience)
		defer cancel()
		p.look(ctx)
	}
	left := p.situation().left
	p.gate.hold(-len(left))
	p.stats.leaveOpen(left)
}

func (p *abandonedPrompts) run(ctx context.Context) {
	for {
		select {
		case <-p.wake:
			p.follow(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// follow looks until there is nothing left to look for: soon after each event, and at
// growing intervals while nothing happens.
func (p *abandonedPrompts) follow(ctx context.Context) {
	pause := firstPromptLook
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for p.isConcerned() {
		select {
		case <-timer.C:
			if pause = min(2*pause, lastPromptLook); p.look(ctx) {
				pause = nextPromptLook
			}
			timer.Reset(pause)
		case <-p.wake:
			if pause > firstPromptLook {
				pause = firstPromptLook
				timer.Reset(pause)
			}
		case <-ctx.Done():
			return
		}
	}
}

// isOpen reports whether a prompt was seen that most likely nobody waits for any more, or
// whether so many of them are queued that uses of keys are refused.
func (p *abandonedPrompts) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *abandonedPrompts) isConcerned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open || p.refused || len(p.pending)+len(p.left) > 0
}

// isPending reports whether a use of a key is under way whose client waits.
func (p *abandonedPrompts) isPending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending) > 0
}

// situation returns what is known without a look.
func (p *abandonedPrompts) situation() scene {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := scene{left: slices.Clone(p.left)}
	for _, use := range p.pending {
		s.pending = append(s.pending, use.began)
	}
	return s
}

// end cancels prompts, and reports whether they are gone.
func (p *abandonedPrompts) end(ctx context.Context, abandoned []pinentry.Process) bool {
	if !p.mayEnd {
		return false
	}
	for _, prompt := range abandoned {
		if err := prompt.End(ctx); err != nil {
			p.log.Debug("a prompt that nobody waits for could not be cancelled", "process", prompt.PID, "error", err)
			return false
		}
		p.log.Debug("cancelled a prompt that nobody waited for", "process", prompt.PID, "age", p.now().Sub(prompt.Started))
	}
	return true
}

// An AbandonedError says that the agent has a prompt open for a program that has gone, or
// most likely has. It no longer holds once the prompt is closed.
type AbandonedError struct {
	Waits   bool // a program on the host waits behind it now
	Refused bool // a program was refused a key: too many that have gone are still queued at the agent
}

func (e *AbandonedError) Error() string {
	switch {
	case e.Refused:
		return "gpg on the host was refused the use of a key: several programs there have asked for one and gone, and the agent is not done with them"
	case e.Waits:
		return "gpg on the host waits behind a prompt that most likely nobody waits for any more"
	}
	return "a prompt is open that most likely nobody waits for any more: the program on the host that asked for it has gone"
}

// Hint says what to do.
func (e *AbandonedError) Hint() string {
	return "cancel it: an answer is used for nobody, and other uses of your keys wait behind it"
}
