package share

import "time"

// Version is the protocol's. A change that an older reader would misunderstand
// raises it; new fields do not.
const Version = 1

// A State is what a bridge is doing.
type State string

// The states of a bridge.
const (
	Connecting State = "connecting" // for the first time, or again
	Up         State = "up"         // gpg on the host is served
	Waiting    State = "waiting"    // for the next try; Problem says why
	Stopping   State = "stopping"   // the host is tidied up
	Gone       State = "gone"       // said by gpg-bridge status --watch of what has ended
	Standby    State = "standby"    // a session is the bridge; this one takes over when that ends
)

// An Ending is why a bridge stops that somebody has asked to.
type Ending string

// The endings.
const (
	TakenDown  Ending = "down"     // who used it does without, and starts no other
	HandedOver Ending = "handover" // to another process
)

// A Status is what a bridge says of itself.
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
	Millis  int64     `json:"duration_ms"`    // of which most is the user's, at a pinentry
	Outcome string    `json:"outcome"`        // OutcomeOK, OutcomeUnanswered, or the agent's error in words
	Code    uint32    `json:"code,omitempty"` // the agent's error
}

// The outcomes that are not in the agent's words.
const (
	OutcomeOK         = "ok"
	OutcomeUnanswered = "unanswered" // the program on the host, or the connection, went away
)

// A Problem is an error with its remedy.
type Problem struct {
	Text   string    `json:"text"`
	Remedy string    `json:"remedy,omitempty"`
	At     time.Time `json:"at"`
}

// A verb is what a connection to a bridge is for.
type verb string

const (
	askStatus  verb = "status"  // once
	askWatch   verb = "watch"   // now and at every change
	askLease   verb = "lease"   // the same, and it counts
	askPin     verb = "pin"     // once; the bridge then stays without leases
	askYield   verb = "yield"   // once; it then makes way, unless it is up
	askReplace verb = "replace" // once; it then makes way
	askStop    verb = "stop"    // once; it then ends
)

// request is the line a connection begins with.
type request struct {
	Version int  `json:"version"`
	Request verb `json:"request"`
}
