//go:build unix

package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// An outcome is what a fault causes in a situation. When the session ends, its
// connections to both sides end, and nothing of it is left.
type outcome struct {
	word   string
	means  string        // for docs/faults.md
	causes []string      // with one of these the session ends; "" is an orderly end
	within time.Duration // how long it may take; 0 is a second
	check  func(s *testbed, state situation) error
}

var outcomes = []outcome{
	{word: "served", means: "the session does not notice; the command is completed", check: goesOn},
	{word: "waits", means: "the session stays as it is, for as long as it takes (tried: 1.2 s; a human may be thinking); then the command is completed", check: waits},
	{word: "later", means: "nothing changes until what is due has come: the agent's answer, the session's turn, or a client that listens again; then the session ends", check: endsLater},
	{word: "no agent", means: "the client is greeted, told `ERR 67108941 No agent running` in answer to its first command, and left; where the agent is silent, its 5 s are waited for", check: noAgent},
	{word: "ends", means: "the session ends, in order", causes: []string{""}},
	{word: "closed", means: "the session had not begun; its connection is closed", check: closes},
	{word: "left", means: "the session ends: *the client left before the agent had answered*; half a second is given to an answer", causes: []string{"the client left before the agent had answered"}},
	{word: "broken", means: "the session ends: *connection to the client lost*, or the write to it failed", causes: []string{"connection to the client lost: ", "write to the client: "}},
	{word: "garbled", means: "the session ends: *the client: line too long*", causes: []string{"the client: line too long"}},
	{word: "lost", means: "the session ends: *connection to the agent lost*, or the write to it failed", causes: []string{"connection to the agent lost: ", "write to the agent: "}},
	{word: "gone", means: "the session ends: *the agent left before it had answered*", causes: []string{"the agent left before it had answered"}},
	{word: "refused", means: "the session ends: the agent said what is not Assuan, or what it was not asked for", causes: []string{"the agent sent a line that is not Assuan", "protocol violation: "}},
	{word: "given up", means: "the session ends: *the agent does not read: it took nothing for 5 s*", causes: []string{"the agent does not read"}, within: 5 * time.Second},
	{word: "shut", means: "the session ends, because the bridge does", causes: []string{errShutdown.Error()}},
	{word: "cut", means: "the session ends: its client's channel does, and all that ran on the connection"},
}

// run requires that the fault that was just injected has the outcome.
func (o outcome) run(s *testbed, state situation) error {
	if o.check != nil {
		return o.check(s, state)
	}
	return s.endsWith(o.causes, o.within)
}

// endsWith requires that the session ends with one of the causes, and that both sides
// are told.
func (s *testbed) endsWith(causes []string, limit time.Duration) error {
	limit += aSecond
	if !within(limit, s.served) {
		return fmt.Errorf("the session goes on, in %q", s.at())
	}
	told := s.client.ended(limit)
	if s.agent != nil {
		told = errors.Join(told, s.agent.ended(limit))
	}
	report, ok := s.report()
	if !ok {
		return errors.New("a session without a report")
	}
	if !explained(report.Cause, causes) {
		return fmt.Errorf("it ended with: %v", report.Cause)
	}
	return told
}

// explained reports whether a cause is one of these. No causes means any.
func explained(cause error, causes []string) bool {
	return causes == nil || slices.ContainsFunc(causes, func(want string) bool {
		if cause == nil || want == "" {
			return cause == nil && want == ""
		}
		return strings.HasPrefix(cause.Error(), want)
	})
}

// goesOn requires that the conversation goes on to the end of a command.
func goesOn(s *testbed, state situation) error {
	if state.lead != nil {
		if err := state.lead(s); err != nil {
			return err
		}
	}
	return state.finish(s)
}

// unmoved requires that the fault has no effect for a while.
func unmoved(s *testbed) error {
	state := s.settled()
	if within(aWhile, s.served) {
		report, _ := s.report()
		return fmt.Errorf("it ended with: %v", report.Cause)
	}
	if now := s.at(); now != state {
		return fmt.Errorf("it went from %q to %q", state, now)
	}
	return nil
}

// settled returns the state when what is on its way to the agent has gone, which takes longer on a
// busy machine; in some situations it never goes.
func (s *testbed) settled() string {
	for range 200 {
		if s.at() != "SendingToAgent" {
			break
		}
		time.Sleep(tick)
	}
	return s.at()
}

func waits(s *testbed, state situation) error {
	if err := unmoved(s); err != nil {
		return err
	}
	return goesOn(s, state)
}

func endsLater(s *testbed, state situation) error {
	if err := unmoved(s); err != nil {
		return err
	}
	due := make(chan struct{})
	s.work.Go(func() {
		defer close(due)
		_ = goesOn(s, state) // as far as that works
	})
	for range patience / tick {
		if isClosed(due) || isClosed(s.served) {
			break
		}
		time.Sleep(tick)
	}
	return s.endsWith(nil, 0)
}

// noAgent requires that the client is told that there is no agent, as soon as the agent's
// time is over. Meanwhile the agent may say the rest of what it has to say.
func noAgent(s *testbed, state situation) error {
	if state.sessions == 1 {
		s.neighbour.close()
	}
	lead := state.lead
	if s.agent == nil && state.backlog == 0 { // the session connects to it with the command
		lead = steps(acceptClient, leadIn)
	}
	if s.speech != inOnePiece {
		s.work.Go(func() { _ = lead(s) })
	}
	if err := askNobody(s); err != nil {
		return err
	}
	return s.endsWith([]string{""}, 0)
}

func closes(s *testbed, _ situation) error {
	return s.client.ended(aSecond)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
