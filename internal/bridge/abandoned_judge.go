package bridge

import (
	"slices"
	"time"

	"gpg-bridge/internal/pinentry"
)

// promptSlack is the possible error of a process's start time as the system reports it. A
// use of a key that began later than the prompt by more than this did not open it.
const promptSlack = 200 * time.Millisecond

// A scene is what a look at the agent has shown, together with what the bridge knows.
type scene struct {
	prompts []pinentry.Process
	clients pinentry.Clients
	counted counting // how far clients can be relied on

	// When uses of keys began: a use begins when the agent has all it needs, and may ask.
	pending []pinentry.Instant // our clients wait for these
	left    []pinentry.Instant // the clients of these left before the answer
}

// A counting says how far a count of the agent's clients can be relied on; see
// pinentry.AccountFor.
type counting uint8

const (
	countUntold    counting = iota // not at all: the system, or the agent, does not tell
	countUnsettled                 // they kept changing: there may be others
	countTold                      // at one moment, these were all of them
)

// A verdict says who waits for the agent's prompt.
type verdict uint8

const (
	promptNone      verdict = iota // there is no prompt
	promptServed                   // somebody waits for it, or may: it is not our business
	promptUnsettled                // the look does not show who may wait: nothing is done or said
	promptDoubtful                 // most likely nobody waits for it any more
	promptAbandoned                // certainly nobody waits for it any more
)

// judge says who waits for the prompts. The agent has one at a time; if there are more,
// they are judged as one.
//
// A prompt is abandoned if it was opened for none of the clients that the agent has now. It
// may always have been opened for another program's client, but for one of ours only if
// that client's use of a key began before the prompt. So it was opened for a client that has
// gone, and the agent must still have that connection: it notices the end only when the
// prompt is closed. That client must have been ours: a prompt this process knows nothing of
// is for another process to cancel. The count of clients is used only if all of them were
// accounted for at one moment after the prompt was seen.
func judge(s scene) verdict {
	if len(s.prompts) == 0 {
		return promptNone
	}
	opened := s.prompts[0].Started
	for _, prompt := range s.prompts {
		opened = max(opened, prompt.Started)
	}
	before := func(began pinentry.Instant) bool { return began < opened.Add(promptSlack) }
	ours := slices.ContainsFunc(s.left, before)
	switch {
	case slices.ContainsFunc(s.pending, before):
		return promptServed
	case s.counted == countUnsettled:
		return promptUnsettled
	case s.counted == countUntold && ours:
		return promptDoubtful
	case s.counted == countUntold || s.clients.Gone == 0:
		return promptServed
	case s.clients.Foreign == 0 && ours:
		return promptAbandoned
	case ours || len(s.pending) > 0:
		return promptDoubtful
	}
	return promptServed
}

// stays returns for how many of the uses that were left the agent may still have a
// connection. The system lists all of these, since they come from this process.
func (s scene) stays() int {
	switch {
	case s.counted != countUntold:
		return min(len(s.left), s.clients.Gone)
	case len(s.prompts) > 0:
		return len(s.left)
	}
	return 0
}
