package pinentry

import (
	"errors"
	"slices"
)

// Errors of OfAgent and its like.
var (
	// ErrUnknown says that this system does not tell.
	ErrUnknown = errors.New("this system does not tell which prompts the agent has open")

	// ErrNotAgent says that the process is no gpg-agent of this user.
	ErrNotAgent = errors.New("not a gpg-agent of this user")
)

// An Agent is one running gpg-agent; another one with the same process ID is not equal to
// it. The zero Agent is none.
type Agent struct{ process member }

// A Process is a pinentry, or what the user runs instead of one: a program that a
// gpg-agent has started and that is not one of GnuPG's own helpers. Programs that it has
// started, as a script does, count as parts of it.
type Process struct {
	PID      int
	Programs []string // the paths, if known, of its program and of those that it has started
	Started  Instant  // to about 10 ms, rounded down

	// Devices are the numbers (st_rdev in stat(2)) of the character devices that the
	// process has open, its terminal among them. A pinentry is told which terminal to
	// use after it was started, and opens it only when it asks. DevicesKnown is false if
	// the system does not tell all of them.
	Devices      []uint64
	DevicesKnown bool

	// Orphaned means that the agent that had started it has ended, so that nobody gets its
	// answer. Only Rest sets it.
	Orphaned bool

	family []member // the process itself first, then those that it started
}

// Uses reports whether the process has the terminal with this device number open. It is
// false if that is not known; see DevicesKnown.
func (p Process) Uses(terminal uint64) bool { return slices.Contains(p.Devices, terminal) }

// Same reports whether both are the same process, seen at two times.
func (p Process) Same(other Process) bool {
	known := len(p.family) > 0 && len(other.family) > 0
	return p.PID == other.PID && (!known || p.family[0] == other.family[0])
}

// A member is one process. Its ID alone may be given to another process when it has ended.
type member struct {
	pid   int
	start uint64 // in the system's own unit
}
