package serve

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/promptguard"
	"gpg-bridge/internal/share"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/remoteside"
)

// A Status is what this process tells others about its bridge. Its methods may be called from
// any goroutine.
type Status struct {
	stats *bridge.Stats // of all bridges of this process, one after the other

	mu     sync.Mutex
	status share.Status
	bridge *bridge.Bridge
	holder *share.Holder
	guard  *promptguard.Guard
}

// NewStatus returns the Status of a process that is about to connect.
func NewStatus(t *target.Target, kind share.Kind) *Status {
	s := &Status{status: share.Status{
		Target: t.Name, Address: t.Address, Kind: kind, Agent: t.Spec.AgentSocket,
		State: share.Connecting, Since: time.Now(),
	}}
	s.stats = bridge.NewStats(s.changedSoon)
	return s
}

// Hold makes this process the bridge of the target; see [share.Dir.Hold].
func (s *Status) Hold(dir *share.Dir, id string) (*share.Holder, error) {
	holder, err := dir.Hold(id, s.snapshot)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.holder = holder
	s.mu.Unlock()
	return holder, nil
}

func (s *Status) snapshot() share.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	if s.bridge != nil {
		status.RemoteSocket = s.bridge.Path()
	}
	counts := s.stats.Counts()
	status.Sessions, status.SessionsTotal = counts.Sessions, counts.Total
	if counts.Last != nil {
		status.LastOperation = operationOf(counts.Last)
	}
	return status
}

// operationOf converts an operation for package share.
func operationOf(o *remoteside.Operation) *share.Operation {
	outcome := share.OutcomeOK
	switch {
	case o.Unanswered:
		outcome = share.OutcomeUnanswered
	case o.Code != 0 || o.Words != "":
		outcome = ui.OneLine(cmp.Or(o.Words, fmt.Sprintf("error %d", o.Code)))
	}
	return &share.Operation{
		Verb: o.Verb, Key: strings.ToUpper(o.Keygrip), At: o.At, Millis: o.Duration.Milliseconds(),
		Outcome: outcome, Code: o.Code,
	}
}

// Set notes a state, and the bridge if it is up: then the bridge's health counts.
func (s *Status) Set(state share.State, up *bridge.Bridge) {
	s.change(func(now *share.Status) {
		if up != nil {
			state = healthOf(now, up)
		}
		noteState(now, state)
		if state == share.Waiting { // without a connection
			now.SharedBy = 0
		}
		s.bridge = up
	})
}

// Looked notes the bridge's health, which may have changed.
func (s *Status) Looked() {
	s.change(func(now *share.Status) {
		if s.bridge != nil {
			noteState(now, healthOf(now, s.bridge))
		}
	})
}

func noteState(now *share.Status, state share.State) {
	if state != now.State {
		now.State, now.Since = state, time.Now()
	}
}

// healthOf returns the state of a bridge that was brought up, and makes its hindrance the
// problem of the status.
func healthOf(now *share.Status, up *bridge.Bridge) share.State {
	what, why := up.Health()
	if why != nil {
		now.Problem = problemOf(why)
	}
	switch what {
	case bridge.Taken:
		return share.Taken
	case bridge.Silent:
		return share.Silent
	case bridge.NoAgent:
		return share.NoAgent
	case bridge.Blocked:
		return share.Blocked
	}
	return share.Up
}

// Agent notes where the local agent was found.
func (s *Status) Agent(path string) {
	if path != "" {
		s.change(func(now *share.Status) { now.Agent = path })
	}
}

// SharedBy notes whose connection is used: that of the user's ssh with this process ID, or
// the bridge's own if pid is 0.
func (s *Status) SharedBy(pid int) { s.change(func(now *share.Status) { now.SharedBy = pid }) }

// Problem notes what went wrong.
func (s *Status) Problem(err error) {
	s.change(func(now *share.Status) { now.Problem = problemOf(err) })
}

func problemOf(err error) *share.Problem {
	problem := &share.Problem{Text: ui.OneLine(err.Error()), Remedy: ui.OneLine(usertext.Hint(err)), At: time.Now()}
	if _, refused := errors.AsType[*bridge.PromptError](err); refused {
		problem.Kind = share.RefusedPrompt
	}
	return problem
}

// Token notes which key on a token that has to be touched the log-in needs; "" for none.
func (s *Status) Token(key string) { s.change(func(now *share.Status) { now.Token = key }) }

// promptRefused notes an operation that was refused. If the user is told, a proxy may have to
// tell them, too, before its ssh ends.
func (s *Status) promptRefused(err *bridge.PromptError, told bool) {
	problem := problemOf(err)
	s.mu.Lock()
	s.status.Problem = problem
	holder := s.holder
	s.mu.Unlock()
	switch {
	case holder == nil:
	case told:
		holder.Changed()
	default:
		holder.ChangedSoon()
	}
}

// Reconnected counts a connection that was made again.
func (s *Status) Reconnected() { s.change(func(now *share.Status) { now.Reconnects++ }) }

func (s *Status) change(change func(*share.Status)) {
	s.mu.Lock()
	change(&s.status)
	holder := s.holder
	s.mu.Unlock()
	if holder != nil {
		holder.Changed()
	}
}

// watchedBy tells the guard of the operations that are under way.
func (s *Status) watchedBy(guard *promptguard.Guard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.guard = guard
}

// changedSoon publishes changes of which there may be a thousand in a second.
func (s *Status) changedSoon() {
	s.mu.Lock()
	holder := s.holder
	s.guard.Operating(s.stats.Counts().Pending)
	s.mu.Unlock()
	if holder != nil {
		holder.ChangedSoon()
	}
}
