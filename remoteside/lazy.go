package remoteside

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"gpg-bridge/assuan"
)

// Lazy returns a ConnectAgent that greets every client at once, and calls connect
// only at the client's first command. So a client that only looks whether somebody
// answers, as the bridge itself does, costs the agent nothing, and does not start an
// agent that the user has stopped. If connect fails, the command is answered with
// "no agent running".
//
// restricted says that connect returns only conversations that the agent has proved
// to be restricted. GETINFO restricted is then answered here, with OK, as the agent
// would. By that command the preparation of a host tells a live forward from an agent
// that runs on the host.
//
// connect is called by the goroutine that reads the agent, so that the other one
// notices if the client leaves meanwhile; the context of connect then ends.
func Lazy(connect ConnectAgent, restricted bool) ConnectAgent {
	return func(ctx context.Context) (Agent, error) {
		ctx, cancel := context.WithCancel(ctx)
		return &lazyAgent{
			connect: connect, restricted: restricted, ctx: ctx, cancel: cancel,
			asked: make(chan []byte, 1), over: make(chan struct{}),
		}, nil
	}
}

// The answers that we give without the agent are those of gpg-agent and libassuan.
const (
	restrictedAnswer = "OK\n"
	byeAnswer        = "OK closing connection\n"
)

// lazyAgent is an Agent that connects at the first command.
type lazyAgent struct {
	connect    ConnectAgent
	restricted bool
	ctx        context.Context
	cancel     context.CancelFunc

	asked chan []byte   // capacity 1: the command that ReadLine is to answer
	over  chan struct{} // closed by Close, while mu is held

	reached atomic.Pointer[Agent] // set once; from then on all lines go there
	said    bool                  // we gave our last answer; owned by the reader

	mu    sync.Mutex
	busy  bool  // a command was not answered yet
	agent Agent // set as soon as it is connected
	err   error // why it could not be reached
}

func (l *lazyAgent) Greeting() []byte { return []byte(ownGreeting) }

func (l *lazyAgent) WriteLine(line []byte) error {
	if agent := l.reached.Load(); agent != nil {
		return (*agent).WriteLine(line)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case isClosed(l.over):
		return net.ErrClosed
	case l.busy:
		return errOneAtATime
	}
	l.busy = true
	l.asked <- bytes.Clone(line)
	return nil
}

var errOneAtATime = errors.New("a command before the last one was answered")

func (l *lazyAgent) ReadLine() ([]byte, bool, error) {
	if agent := l.reached.Load(); agent != nil {
		return (*agent).ReadLine()
	}
	if l.said {
		return nil, false, io.EOF
	}
	var command assuan.Command
	select {
	case line := <-l.asked:
		command = assuan.ParseCommand(line)
	case <-l.over:
	}
	switch {
	case isClosed(l.over):
		return nil, false, io.EOF
	case command.Is("BYE"):
		l.said = true
		return []byte(byeAnswer), false, nil
	case l.restricted && asksRestricted(command):
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy = false
		return []byte(restrictedAnswer), false, nil
	}
	return l.reach(command.Line)
}

// asksRestricted reports whether a command is GETINFO restricted (gnupg agent/command.c).
func asksRestricted(c assuan.Command) bool {
	return c.Is("GETINFO") && string(c.Args) == "restricted"
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reach connects, sends the first command and returns the first line of the answer.
func (l *lazyAgent) reach(first []byte) ([]byte, bool, error) {
	agent, err := l.connect(l.ctx)
	switch {
	case err != nil && l.ctx.Err() != nil:
		return nil, false, context.Cause(l.ctx)
	case err != nil:
		l.said = true
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = err
		return []byte(assuan.ErrNoAgent), false, nil
	case !l.adopt(agent):
		_ = agent.Close()
		return nil, false, io.EOF
	}
	err = agent.WriteLine(first)
	l.reached.Store(&agent)
	if errors.Is(err, io.EOF) {
		err = errAgentGone
	}
	if err != nil {
		return nil, false, err
	}
	return agent.ReadLine()
}

// adopt reports whether the agent is still wanted. If it is, Close will close it: Close ends
// the context before it looks for an agent.
func (l *lazyAgent) adopt(agent Agent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.agent = agent
	return true
}

// unreachable returns why the agent could not be reached, or nil if it was, or was not
// needed.
func (l *lazyAgent) unreachable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lazyAgent) Close() error {
	l.cancel()
	l.mu.Lock()
	if !isClosed(l.over) {
		close(l.over)
	}
	agent := l.agent
	l.mu.Unlock()
	if agent == nil {
		return nil
	}
	return agent.Close()
}
