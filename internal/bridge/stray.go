package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"gpg-bridge/internal/pinentry"
)

const (
	// strayLook is the time between two looks at the agent's prompts after a use of a key has
	// begun or the prompts have changed; in that time nobody can read a prompt and begin to
	// type. After strayQuick without either it is laterStrayLook, and after straySlow
	// lastStrayLook: prompts may be open overnight.
	strayLook      = 25 * time.Millisecond
	strayQuick     = 2 * time.Second
	laterStrayLook = 250 * time.Millisecond
	straySlow      = 10 * time.Second
	lastStrayLook  = time.Second

	// sameStrayLook is how long it is not looked again who reads the prompts' terminals, as
	// long as these are the same.
	sameStrayLook = 250 * time.Millisecond

	// identityPause is the time between two attempts to find out the agent's process.
	identityPause = time.Second
)

// strayPrompts ends prompts that open on a terminal whose input another program reads, while
// one of our clients uses a key. Most such prompts never open, since the agent is told not to
// ask (misplacedPrompt). These do if a pinentry with a display asks on the terminal all the
// same, or if the user's ssh starts to read the terminal when the agent already has the
// operation. A prompt is ended whoever it is for: what is typed at it would also go to the
// other program. Only Linux tells of them.
type strayPrompts struct {
	identify func(context.Context) (pinentry.Agent, error)
	pending  func() bool // whether one of our clients uses a key
	open     func(pinentry.Agent) ([]pinentry.Process, error)
	readers  func() ([]pinentry.Reader, error)
	ended    func(*PromptError)
	log      *slog.Logger
	wake     chan struct{}

	agent        pinentry.Agent // this and the rest is owned by run
	identifiedAt time.Time
	prompts      []pinentry.Process // at the last look for readers
	looked       time.Time
	changed      time.Time // when the last use of a key began, or the prompts were seen to change
}

func newStrayPrompts(local *Local, pending func() bool, log *slog.Logger) *strayPrompts {
	return &strayPrompts{
		identify: func(ctx context.Context) (pinentry.Agent, error) {
			pid, err := local.Agent.ProcessID(ctx)
			if err != nil {
				return pinentry.Agent{}, err
			}
			return pinentry.AgentOf(pid)
		},
		pending: pending, open: pinentry.Agent.Prompts, readers: pinentry.Readers, ended: local.promptRefused, log: log, wake: make(chan struct{}, 1),
	}
}

// began tells run that a use of a key begins. It does not block. The nil *strayPrompts does
// nothing.
func (s *strayPrompts) began() {
	if s != nil {
		signal(s.wake)
	}
}

// run looks until ctx ends.
func (s *strayPrompts) run(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		s.changed = time.Now()
		for s.rest(ctx) && s.pending() {
			s.look(ctx)
		}
	}
}

// rest waits until the next look, and reports whether there is to be one. A use that begins
// meanwhile brings the look forward, and no number of them puts it off.
func (s *strayPrompts) rest(ctx context.Context) bool {
	pause := s.pause()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-s.wake:
			s.changed = time.Now()
			if pause > strayLook {
				pause = strayLook
				timer.Reset(pause)
			}
		case <-ctx.Done():
			return false
		}
	}
}

func (s *strayPrompts) pause() time.Duration {
	switch since := time.Since(s.changed); {
	case since < strayQuick:
		return strayLook
	case since < straySlow:
		return laterStrayLook
	}
	return lastStrayLook
}

// look ends the prompts on terminals that have a reader. While new prompts are likely it looks
// for prompts first, and later for readers first, of which there are none most of the time.
func (s *strayPrompts) look(ctx context.Context) {
	quick := s.pause() == strayLook
	var readers []pinentry.Reader
	var err error
	if !quick {
		if readers, err = s.readers(); err != nil || len(readers) == 0 {
			return
		}
	}
	prompts, err := s.agentsPrompts(ctx)
	if err != nil {
		return
	}
	same := slices.EqualFunc(prompts, s.prompts, isAsBefore)
	if !same {
		s.prompts, s.changed = prompts, time.Now()
	}
	if len(prompts) == 0 || quick && same && time.Since(s.looked) < sameStrayLook {
		return
	}
	if quick {
		s.looked = time.Now()
		if readers, err = s.readers(); err != nil {
			return
		}
	}
	for _, p := range prompts {
		if i := slices.IndexFunc(readers, func(r pinentry.Reader) bool { return p.Uses(r.Terminal) }); i >= 0 {
			s.end(ctx, p, readers[i])
		}
	}
}

func isAsBefore(p, before pinentry.Process) bool {
	return p.Same(before) && slices.Equal(p.Devices, before.Devices)
}

// agentsPrompts returns the agent's prompts. It asks the agent for its process only once, and
// again when that has ended.
func (s *strayPrompts) agentsPrompts(ctx context.Context) ([]pinentry.Process, error) {
	prompts, err := s.open(s.agent)
	if !errors.Is(err, pinentry.ErrNotAgent) || time.Since(s.identifiedAt) < identityPause {
		return prompts, err
	}
	asking, cancel := context.WithTimeout(ctx, promptPatience)
	defer cancel()
	s.agent, err = s.identify(asking)
	s.identifiedAt = time.Now()
	if err != nil {
		return nil, err
	}
	return s.open(s.agent)
}

// end ends a prompt, and has the user told why.
func (s *strayPrompts) end(ctx context.Context, p pinentry.Process, reader pinentry.Reader) {
	if err := p.End(ctx); err != nil {
		s.log.Warn("a prompt where another program reads what is typed could not be ended", "process", p.PID, "error", err)
		return
	}
	s.ended(&PromptError{Terminal: reader.TerminalPath(), Reader: reader, Ended: true})
}
