package remoteside

import "github.com/google/uuid"

// An Observer is told what the clients of a Server do. What it is told holds no
// payload. Its methods are called in the middle of a conversation and must not
// block. For one session they are called one after the other, for several
// sessions concurrently.
//
// Embed NopObserver to observe only some of it.
type Observer interface {
	// Began is called once for every session whose client uses the agent. Most
	// clients only look who is there, or verify the path, and send no command
	// but BYE and GETINFO restricted; for those only Ended is called.
	Began(session uuid.UUID)

	// Operating is called when the use of a secret key begins, before the agent
	// gets the command. The operation's At is the beginning.
	Operating(o Operation)

	// Leaving is called when the client sends its last byte while the agent may
	// be asking its user about its operation: one for which Asked is set. It is
	// not called for one that had Left set when it was asked.
	Leaving(o Operation)

	// Operated is called when the use of a secret key is over, once for every
	// call of Operating.
	Operated(o Operation)

	// Ended is called when the session is over, for every session.
	Ended(r Report)
}

// A Report is what is known of a session at its end. It holds no payload.
type Report struct {
	ID          uuid.UUID
	Commands    uint64
	Began       bool  // Observer.Began was called
	Cause       error // nil: an orderly end
	Unreachable error // why no agent could be reached; nil when it was
}

// NopObserver is an Observer that does nothing.
type NopObserver struct{}

// Began does nothing.
func (NopObserver) Began(uuid.UUID) {}

// Operating does nothing.
func (NopObserver) Operating(Operation) {}

// Leaving does nothing.
func (NopObserver) Leaving(Operation) {}

// Operated does nothing.
func (NopObserver) Operated(Operation) {}

// Ended does nothing.
func (NopObserver) Ended(Report) {}
