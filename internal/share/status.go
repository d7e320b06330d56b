package share

import "time"

// Version is the protocol's version. It is raised for a change that an older reader would
// misunderstand, not for new fields.
const Version = 1

// A State is what a bridge is doing.
type State string

// The states of a bridge.
const (
	Connecting State = "connecting" // for the first time, or again
	Up         State = "up"         // gpg on the host is served: a signature would work
	Taken      State = "taken"      // the socket on the host is gone, or leads to somebody else; Problem says to whom
	Silent     State = "silent"     // the host does not answer
	NoAgent    State = "no-agent"   // the local agent cannot be used; Problem says why
	Blocked    State = "blocked"    // by a prompt of the agent that nobody waits for any more
	Waiting    State = "waiting"    // for the next try; Problem says why
	Stopping   State = "stopping"   // removing what it made on the host
	Gone       State = "gone"       // has ended; only gpg-bridge status --watch says so
	Standby    State = "standby"    // a session is the bridge; this one takes over when it ends
)

// Settled reports whether a bridge in this state has done all it can: gpg on the host is
// served, or will be as soon as the Problem is solved, and no other process could do
// better.
func (s State) Settled() bool { return s == Up || s == Taken || s == NoAgent || s == Blocked }

// Hindered reports whether gpg on the host cannot be served in this state, for the reason
// in Problem.
func (s State) Hindered() bool {
	return s == Taken || s == Silent || s == NoAgent || s == Blocked || s == Waiting
}

// An Ending is why somebody has asked a bridge to stop.
type Ending string

// The endings.
const (
	TakenDown  Ending = "down"     // those who used it do not start another
	HandedOver Ending = "handover" // another process takes its place
)

// A Status is what a bridge says about itself.
type Status struct {
	Version int    `json:"version"`
	ID      string `json:"id"`     // of the target: hex digits
	Target  string `json:"target"` // as the user named it
	Address string `json:"address"`
	Kind    Kind   `json:"kind"`
	PID     int    `json:"pid"`

	State  State     `json:"state"`
	Since  time.Time `json:"since"`            // of the state
	Ending Ending    `json:"ending,omitempty"` // while it stops, if it was asked to

	RemoteSocket string `json:"remote_socket,omitempty"`
	Agent        string `json:"agent,omitempty"` // the local socket

	// Token is the key that the log-in needs, if it is on a token that has to be touched. A
	// bridge in the background then makes the next try when somebody wants to use it.
	Token string `json:"token,omitempty"`

	SharedBy int `json:"shared_by,omitempty"` // the process ID of the user's ssh whose connection is used; 0: the bridge has its own

	Sessions      int        `json:"sessions"`       // now: programs on the host that talk to the agent
	SessionsTotal uint64     `json:"sessions_total"` // since the bridge began
	LastOperation *Operation `json:"last_operation,omitempty"`
	Reconnects    int        `json:"reconnects"`
	Problem       *Problem   `json:"problem,omitempty"` // the last one

	Leases int  `json:"leases"` // processes that use it
	Pinned bool `json:"pinned"` // it stays without any
}

// A Kind is what sort of process a bridge lives in.
type Kind string

// The kinds of bridges.
const (
	Background Kind = "background" // of its own, until nobody needs it
	Session    Kind = "session"    // of a gpg-bridge ssh, until that ends
)

// An Operation is one use of a secret key, or another command of interest.
type Operation struct {
	Verb    string    `json:"verb"`           // such as PKSIGN
	Key     string    `json:"key,omitempty"`  // its keygrip
	At      time.Time `json:"at"`             // its end
	Millis  int64     `json:"duration_ms"`    // most of it the user's time at a pinentry
	Outcome string    `json:"outcome"`        // OutcomeOK, OutcomeUnanswered, or the agent's error in words
	Code    uint32    `json:"code,omitempty"` // the agent's error
}

// The outcomes that are not an error of the agent's.
const (
	OutcomeOK         = "ok"
	OutcomeUnanswered = "unanswered" // the program on the host, or the connection, went away
)

// A Problem is an error, with what to do about it.
type Problem struct {
	Kind   string    `json:"kind,omitempty"` // RefusedPrompt, or "" for all else
	Text   string    `json:"text"`
	Remedy string    `json:"remedy,omitempty"`
	At     time.Time `json:"at"`
}

// RefusedPrompt is the kind of problem of a bridge that works: it refused an operation
// because its prompt would have opened in the wrong place, or because that could not be
// found out. In the latter case the bridge is not Up until it can be.
const RefusedPrompt = "refused prompt"

// A verb is what a connection to a bridge is for.
type verb string

const (
	askStatus  verb = "status"  // once
	askWatch   verb = "watch"   // now and at every change
	askLease   verb = "lease"   // the same, and the bridge stays for it
	askPin     verb = "pin"     // once; the bridge then stays without leases
	askYield   verb = "yield"   // once; the bridge then makes way, unless it is settled
	askReplace verb = "replace" // once; the bridge then makes way
	askStop    verb = "stop"    // once; the bridge then ends
)

// request is the line a connection begins with.
type request struct {
	Version int  `json:"version"`
	Request verb `json:"request"`
}
