package sshfwd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/login"
)

// The names of agent forwarding in OpenSSH's PROTOCOL.agent: the older ones, which every
// server knows.
const (
	agentRequest = "auth-agent-req@openssh.com"
	agentChannel = "auth-agent@openssh.com"
)

// maxAgentChannels is how many connections to the agent a host may have at the same time:
// each ssh on the host needs one.
const maxAgentChannels = 64

// errNoAgent says that there is no agent to forward.
var errNoAgent = errors.New("no ssh-agent to forward")

// A ForwardAgentError says that the ssh-agent is not forwarded. ssh does not report that if
// ForwardAgent is only "yes".
type ForwardAgentError struct {
	Socket string // "" if none is known
	Err    error
}

func (e *ForwardAgentError) Error() string {
	if e.Socket == "" {
		return e.Err.Error()
	}
	return "cannot forward the ssh-agent at " + usertext.Line(e.Socket) + ": " + usertext.RootCause(e.Err).Error()
}

func (e *ForwardAgentError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ForwardAgentError) Hint() string {
	return "start an ssh-agent, or name its socket: see SSH_AUTH_SOCK, and ForwardAgent in ssh_config(5)"
}

// agentForward relays the host's agent channels to the ssh-agent.
type agentForward struct {
	socket  string
	binding *login.Binding // nil if the agent cannot be told which host it is
	log     *slog.Logger
}

// ForwardAgent lets the host use the user's ssh-agent, as ForwardAgent in
// ssh_config(5) says; sessions must ask for it (SessionRequest.ForwardAgent).
// The agent is told that the host's connections are forwarded
// (session-bind@openssh.com), so that it respects the destination constraints of keys.
// The Client owns the goroutines, which end with the connection. The error is a
// *ForwardAgentError, also at a second call.
func (c *Client) ForwardAgent() error {
	if c.agent == nil || c.agent.socket == "" {
		return &ForwardAgentError{Err: errNoAgent}
	}
	socket := c.agent.socket
	if err := login.AgentExists(socket); err != nil {
		return &ForwardAgentError{socket, err}
	}
	in, err := c.Incoming(agentChannel)
	if err != nil {
		return &ForwardAgentError{socket, errors.New("it is forwarded already")}
	}
	c.wg.Go(func() { c.agent.serve(in, &c.conns) })
	return nil
}

// serve accepts the host's channels until the connection ends.
func (f *agentForward) serve(in <-chan ssh.NewChannel, conns *connList) {
	ctx, cancel := context.WithCancel(context.Background())
	slots := make(chan struct{}, maxAgentChannels)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for newCh := range in {
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				f.handle(ctx, conns, newCh)
			})
		default:
			_ = newCh.Reject(ssh.ResourceShortage, "too many connections to the agent")
		}
	}
}

// handle serves one channel (client_request_agent in OpenSSH's clientloop.c). ctx ends with
// the connection to the host.
func (f *agentForward) handle(ctx context.Context, conns *connList, newCh ssh.NewChannel) {
	conn, err := f.dial(ctx)
	if err != nil {
		f.log.Warn("forwarded ssh-agent not reached", "err", err)
		_ = newCh.Reject(ssh.ConnectionFailed, "no agent")
		return
	}
	ch, err := conns.accept(newCh)
	if err != nil {
		_ = conn.Close()
		return
	}
	ch.Splice(ctx, conn)
}

// dial connects to the agent, and binds the connection to the host before the host's first
// byte is sent.
func (f *agentForward) dial(ctx context.Context) (net.Conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, login.AgentTimeout)
	defer cancel()
	conn, err := login.DialAgent(dialCtx, f.socket)
	if err != nil || f.binding == nil {
		return conn, err
	}
	_ = conn.SetDeadline(time.Now().Add(login.AgentTimeout))
	// The client cannot close conn, and reads nothing beyond its one answer.
	if err := f.binding.Tell(agent.NewClient(struct{ io.ReadWriter }{conn}), true); err != nil {
		f.log.Debug("ssh-agent not bound to the host", "err", err)
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}
