package remoteside

import (
	"io"
	"sync"

	"gpg-bridge/assuan"
)

// An Agent is one conversation with a gpg-agent, greeted and proved. WriteLine
// and ReadLine may be called from two goroutines at once; Close unblocks both.
type Agent interface {
	// Greeting returns the agent's first line, with its LF.
	Greeting() []byte

	// WriteLine sends one line, with its LF.
	WriteLine(line []byte) error

	// ReadLine returns the next line with its LF, valid until the next
	// ReadLine. more says that another complete line is already here. The
	// error is io.EOF when the agent closed between two responses.
	ReadLine() (line []byte, more bool, err error)

	// Close ends the conversation in any state.
	Close() error
}

// noAgent stands where no agent could be reached. A gpg that gets no greeting,
// or an ERR for one, starts an agent of the host's own, which unlinks our
// socket; so it is greeted, told that there is no agent, and left.
type noAgent struct {
	mu     sync.Mutex
	asked  chan struct{} // closed by the first command, or by Close
	said   bool          // the answer was given; owned by the reader
	closed bool
	once   sync.Once
}

func newNoAgent() *noAgent { return &noAgent{asked: make(chan struct{})} }

func (a *noAgent) Greeting() []byte { return []byte("OK Pleased to meet you\n") }

func (a *noAgent) WriteLine([]byte) error {
	a.once.Do(func() { close(a.asked) })
	return nil
}

func (a *noAgent) ReadLine() ([]byte, bool, error) {
	<-a.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.said {
		return nil, false, io.EOF
	}
	a.said = true
	return []byte(assuan.ErrNoAgent), false, nil
}

func (a *noAgent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.once.Do(func() { close(a.asked) })
	return nil
}
