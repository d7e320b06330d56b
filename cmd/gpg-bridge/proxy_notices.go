package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"gpg-bridge/internal/share"
)

const (
	// noticeEvery is how often all proxies of a target together say that there
	// is no bridge.
	noticeEvery = time.Minute

	// firstLook and lastLook are how long a notice waits before it looks again
	// whether it may be said.
	firstLook = 50 * time.Millisecond
	lastLook  = 5 * time.Second
)

// notices says that there is no bridge, when it disturbs nobody: not while ssh
// asks something or a program on the host has the terminal. Its methods may be
// called from any goroutine.
type notices struct {
	ui   *ui
	sent func() int64

	mu      sync.Mutex
	keeper  *keeper // nil before it is known whose bridge it is
	problem *share.Problem
	at      int64 // what had been sent when the problem came up
	look    *time.Timer
	pause   time.Duration
	closed  bool
}

func newNotices(ui *ui, sent func() int64) *notices { return &notices{ui: ui, sent: sent} }

// speakFor tells what the notices are about.
func (n *notices) speakFor(k *keeper) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.keeper = k
}

// put notes what there is to say, in the place of what was not said yet; nil is
// nothing.
func (n *notices) put(problem *share.Problem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	if n.problem == nil && n.sent != nil {
		n.at = n.sent()
	}
	n.problem = problem
	if n.look != nil {
		n.look.Stop()
	}
	n.pause = firstLook
	n.sayLocked()
}

// close says what is due. ssh has put the terminal back.
func (n *notices) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sayLocked()
	n.closed = true
	if n.look != nil {
		n.look.Stop()
	}
}

func (n *notices) sayLocked() {
	if n.problem == nil || n.closed {
		return
	}
	if !n.isDue() || isBusy(n.ui.stderr) {
		n.look = time.AfterFunc(n.pause, n.again)
		n.pause = min(2*n.pause, lastLook)
		return
	}
	problem := n.problem
	n.problem = nil
	if n.keeper == nil {
		n.ui.warn(&unservedError{"the host", problem})
	} else if n.keeper.dir.Once(n.keeper.target.id, noticeEvery) {
		n.ui.warn(&unservedError{n.keeper.target.name, problem})
	}
}

func (n *notices) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sayLocked()
}

// isDue reports whether ssh has gone on since the problem came up. It may be
// asking the user what the bridge stumbled over, or fail itself, and say so.
func (n *notices) isDue() bool { return n.sent == nil || n.sent() > n.at }

// isBusy reports whether somebody has the terminal who would not like to be
// written over.
func isBusy(stderr io.Writer) bool {
	file, ok := stderr.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && !terminalIsCooked(file)
}

// A unservedError tells the user why gpg on the host has no agent.
type unservedError struct {
	host    string
	problem *share.Problem
}

func (e *unservedError) Error() string {
	return fmt.Sprintf("no bridge for gpg on %s: %s", e.host, e.problem.Text)
}

// Hint says what to do.
func (e *unservedError) Hint() string { return e.problem.Remedy }
