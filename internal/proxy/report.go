package proxy

import (
	"context"
	"sync"
	"time"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/notice"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/ui"
)

const (
	// firstLook and lastLook are the first and the longest pause before the reporter
	// looks again whether it may tell something.
	firstLook = 50 * time.Millisecond
	lastLook  = 5 * time.Second

	// askTimeout is how long the bridge has, when ssh ends, to tell whether it has
	// refused a prompt. ssh does not wait for it, but whoever reads its stderr to the
	// end does. A bridge that is well answers at once.
	askTimeout = 200 * time.Millisecond
)

// A reporter tells the user that there is no bridge, or what it has refused, when that
// disturbs nobody: not while ssh asks something or a program on the host has the terminal.
// Its methods may be called from any goroutine.
type reporter struct {
	ui   *ui.UI
	sent func() int64 // how much has gone to the host; nil if that is not known

	mu        sync.Mutex
	bridge    *background.Launcher // nil before it is known which one it is
	problem   *share.Problem       // what is to be told; nil: nothing
	sentThen  int64                // what had been sent when the problem came up
	next      *time.Timer          // until the next look
	pause     time.Duration        // before the look after that
	closed    bool
	answering bool // there is a lease of a bridge that answers

	refusedAt time.Time // of the last refused prompt that was reported
}

func newReporter(user *ui.UI, sent func() int64) *reporter {
	return &reporter{ui: user, sent: sent, refusedAt: time.Now()}
}

// setBridge says which bridge the reports are about.
func (r *reporter) setBridge(bridge *background.Launcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bridge = bridge
}

// setAnswering says whether there is a lease of a bridge that answers.
func (r *reporter) setAnswering(answering bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answering = answering
}

// report replaces what is to be told; nil is nothing.
func (r *reporter) report(problem *share.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reportLocked(problem)
}

func (r *reporter) reportLocked(problem *share.Problem) {
	if r.closed {
		return
	}
	if r.problem == nil && r.sent != nil {
		r.sentThen = r.sent()
	}
	r.problem = problem
	if r.next != nil {
		r.next.Stop()
	}
	r.pause = firstLook
	r.tellLocked()
}

// reportRefused reports a refused prompt, each once.
func (r *reporter) reportRefused(problem *share.Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem.At.After(r.refusedAt) {
		r.refusedAt = problem.At
		r.reportLocked(problem)
	}
}

// askBridge asks the bridge whether it has refused a prompt, since ssh may end with the
// command that was refused. It does not ask one that has not answered so far.
func (r *reporter) askBridge() {
	r.mu.Lock()
	bridge, answering := r.bridge, r.answering
	r.mu.Unlock()
	if bridge == nil || !answering {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	status, err := bridge.Dir.Status(ctx, bridge.Target.ID)
	if err == nil && status.Problem.IsRefusedPrompt() {
		r.reportRefused(status.Problem)
	}
}

// close tells what may be told now, and nothing after that. ssh has restored the terminal.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellLocked()
	r.closed = true
	if r.next != nil {
		r.next.Stop()
	}
}

// tellLocked tells the problem, now or, if that would disturb, later.
func (r *reporter) tellLocked() {
	if r.problem == nil || r.closed {
		return
	}
	if !r.isDue() || r.ui.IsBusy() {
		r.next = time.AfterFunc(r.pause, r.tell)
		r.pause = min(2*r.pause, lastLook)
		return
	}
	problem := r.problem
	r.problem = nil
	if r.bridge == nil {
		r.ui.Warn(&share.UnservedError{Host: "the host", Problem: problem})
	} else if r.bridge.Dir.Claim(r.bridge.Target.ID, notice.Every) {
		r.ui.Warn(&share.UnservedError{Host: r.bridge.Target.Name, Problem: problem})
	}
}

func (r *reporter) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellLocked()
}

// isDue reports whether ssh has gone on since the problem came up. Until then it may be
// asking the user for what the bridge lacks, or fail itself, and say so. A bridge that
// refuses a prompt is up, so that needs no such wait.
func (r *reporter) isDue() bool {
	return r.sent == nil || r.problem.IsRefusedPrompt() || r.sent() > r.sentThen
}
