package remoteside

import (
	"io"
	"sync"

	"gpg-bridge/assuan"
)

// An Agent is one conversation with a gpg-agent that has greeted, and has proved
// the connection to be restricted. One goroutine may call WriteLine while another
// calls ReadLine; Close unblocks both.
type Agent interface {
	// Greeting returns the agent's first line, with its LF.
	Greeting() []byte

	// WriteLine sends one line, with its LF.
	WriteLine(line []byte) error

	// ReadLine returns the next line with its LF, valid until the next
	// ReadLine. more says that another complete line was already read. The
	// error is io.EOF if the agent closed between two responses.
	ReadLine() (line []byte, more bool, err error)

	// Close ends the conversation in any state.
	Close() error
}

// noAgent is used if no agent could be reached. It greets, answers the first command
// with "no agent running", and ends. A gpg that got no greeting, or an ERR instead,
// would start an agent on the host, and that would unlink our socket.
type noAgent struct {
	mu     sync.Mutex
	asked  chan struct{} // closed by the first command, or by Close
	said   bool          // the answer was given
	closed bool
	once   sync.Once
}

func newNoAgent() *noAgent { return &noAgent{asked: make(chan struct{})} }

// ownGreeting is libassuan's greeting, for clients that we greet before there is an
// agent.
const ownGreeting = "OK Pleased to meet you\n"

func (a *noAgent) Greeting() []byte { return []byte(ownGreeting) }

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
