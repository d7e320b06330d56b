package promptguard

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/pinentry"
	"gpg-bridge/internal/retry"
	"gpg-bridge/internal/ui"
)

const (
	// promptLook is the time between two looks for a prompt that may come, or at one that is
	// there.
	promptLook = 25 * time.Millisecond

	// outputLook is how old the last look may be when output is written, if no operation of
	// this process may ask. Each look costs some file reads in /proc.
	outputLook = 10 * time.Millisecond

	// orphanPatience bounds the wait for a pinentry without an agent to end.
	orphanPatience = 4 * time.Second
)

// A Guard keeps a session off the user's terminal while a pinentry asks there, since what is
// typed then is for the pinentry. A pinentry is recognised by what is certain: a gpg-agent of
// the user's has started it, and it has the terminal open. It does not matter for whom it asks,
// nor which agent the session uses, and so no agent is asked. If the system does not tell of
// such processes, an operation of this process that may ask there counts as a prompt, starting
// before the agent gets it.
//
// Its methods may be called from any goroutine. The nil *Guard guards nothing.
type Guard struct {
	agent    *agentside.Agent
	terminal uint64                                           // its device number
	find     func(pinentry.Agent) ([]pinentry.Process, error) // pinentry.Agent.Prompts
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup

	operations atomic.Int64  // of this process, which the agent has not answered yet
	began      chan struct{} // holds one signal

	mu       sync.Mutex
	Borrower Borrower
	place    agentPlace
	slowAt   time.Time // when the agent was last slow to answer
	agents   agentList
	asking   []pinentry.Process // prompts that were seen to have the terminal
	byLine   bool               // one of them waits for a line
	over     chan struct{}      // not nil while a pinentry has the terminal; closed when it is free
	looked   time.Time
	expected expectation
	told     cancellation
}

// A Borrower is told repeatedly that a pinentry has the terminal, and once that the terminal is
// free again, before anybody reads or writes. byLine: the pinentry waits for a line.
type Borrower interface {
	Lent(byLine bool)
	Returned()
}

// New guards the terminal of this process, if there is one. The caller must call End; ctx ends
// all waiting.
func New(ctx context.Context, user *ui.UI, agent *agentside.Agent) *Guard {
	terminal := terminalOf(user)
	if terminal == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &Guard{
		agent: agent, terminal: terminal, find: pinentry.Agent.Prompts,
		ctx: ctx, cancel: cancel, began: make(chan struct{}, 1),
	}
	g.work.Go(g.locate)
	g.work.Go(g.attend)
	user.SetPrompt(g.cancelPrompt)
	if deviceOf(user.Stderr) == terminal {
		user.SetTurn(g.Await)
	}
	return g
}

// End ends all waiting. It also ends a pinentry whose agent has gone: nobody would get its
// answer, and pinentry-curses uses a whole CPU once its terminal has gone, too.
func (g *Guard) End() {
	if g == nil {
		return
	}
	g.cancel()
	g.mu.Lock() // from now on no look starts work
	g.mu.Unlock()
	g.work.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), orphanPatience)
	defer cancel()
	for _, p := range g.asking {
		if rest, ok := p.Rest(); ok && rest.Orphaned {
			_ = rest.End(ctx) // the session is over in any case
		}
	}
}

// Operating notes how many operations the agent has not answered yet.
func (g *Guard) Operating(n int) {
	if g == nil {
		return
	}
	g.operations.Store(int64(n))
	select {
	case g.began <- struct{}{}:
	default:
	}
}

// attend looks for prompts as long as there are operations, so that a prompt is noticed before
// anything is typed.
func (g *Guard) attend() {
	for {
		select {
		case <-g.began:
		case <-g.ctx.Done():
			return
		}
		for g.operations.Load() > 0 && retry.Sleep(g.ctx, promptLook, nil) == nil {
			g.isTaken()
		}
	}
}

// LendFor sets who is told of prompts from now on; nil for nobody.
func (g *Guard) LendFor(b Borrower) {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.Borrower = b
	}
}

// IsFree reports whether what is typed is for the session.
func (g *Guard) IsFree() bool { return g == nil || !g.isTaken() }

// isTaken looks whether a pinentry has the terminal.
func (g *Guard) isTaken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takenLocked()
}

func (g *Guard) takenLocked() bool {
	switch {
	case g.ctx.Err() != nil:
		return false
	case g.over != nil:
		return true
	}
	taken := g.look()
	g.looked = time.Now()
	if taken {
		g.over = make(chan struct{})
		g.work.Go(g.lend)
	}
	return taken
}

// Await returns when no pinentry has the terminal.
func (g *Guard) Await() {
	if g == nil {
		return
	}
	for g.ctx.Err() == nil {
		g.mu.Lock()
		recent := g.over == nil && g.operations.Load() == 0 && time.Since(g.looked) < outputLook
		if recent || !g.takenLocked() {
			g.mu.Unlock()
			return
		}
		over := g.over
		g.mu.Unlock()
		select {
		case <-over:
		case <-g.ctx.Done():
		}
	}
}

// lend waits until the pinentry has gone, and has the Borrower restore the terminal.
func (g *Guard) lend() {
	for first := true; ; first = false {
		g.mu.Lock()
		taken, b, byLine := g.ctx.Err() == nil && (first || g.look()), g.Borrower, g.byLine
		g.mu.Unlock()
		if !taken {
			break
		}
		if b != nil {
			b.Lent(byLine)
		}
		_ = retry.Sleep(g.ctx, promptLook, nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Borrower != nil {
		g.Borrower.Returned()
	}
	close(g.over)
	g.over = nil
}

// Writer writes to the terminal when it is free, and to anything else at once.
func (g *Guard) Writer(w io.Writer) io.Writer {
	if g == nil || deviceOf(w) != g.terminal {
		return w
	}
	return guardedWriter{g, w}
}

type guardedWriter struct {
	guard *Guard
	io.Writer
}

func (w guardedWriter) Write(p []byte) (int, error) {
	w.guard.Await()
	return w.Writer.Write(p)
}

// terminalOf returns the device number of the user's terminal, 0 if there is none.
func terminalOf(user *ui.UI) uint64 {
	for _, stream := range []any{user.Stdin, user.Stdout, user.Stderr} {
		if number := deviceOf(stream); number != 0 {
			return number
		}
	}
	return 0
}

// deviceOf returns a terminal's device number, 0 for anything else.
func deviceOf(stream any) uint64 {
	file, ok := stream.(*os.File)
	if !ok || file == nil || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	return pinentry.DeviceOf(file)
}
