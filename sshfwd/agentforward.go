package sshfwd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Agent forwarding, the names of OpenSSH's PROTOCOL.agent (its older ones, which
// every server knows).
const (
	agentRequest = "auth-agent-req@openssh.com"
	agentChannel = "auth-agent@openssh.com"
)

// maxAgentChannels bounds the connections to the agent that a host holds at
// once: each ssh on the host needs one.
const maxAgentChannels = 64

// errNoAgent: there is nothing to forward.
var errNoAgent = errors.New("no ssh-agent to forward")

// ForwardAgentError: the ssh-agent is not forwarded. ssh says nothing of it
// where the configuration only says "yes".
type ForwardAgentError struct {
	Socket string // "" if none is known
	Err    error
}

func (e *ForwardAgentError) Error() string {
	if e.Socket == "" {
		return e.Err.Error()
	}
	return "cannot forward the ssh-agent at " + printableLine(e.Socket) + ": " + rootCause(e.Err).Error()
}

func (e *ForwardAgentError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *ForwardAgentError) Hint() string {
	return "start an ssh-agent, or name its socket: see SSH_AUTH_SOCK, and ForwardAgent in ssh_config(5)"
}

// agentForward relays what the host sends on agent channels to the ssh-agent.
type agentForward struct {
	socket  string
	binding *hostBinding // nil if the agent cannot be told
	log     *slog.Logger
}

// ForwardAgent lets the host use the user's ssh-agent, as ForwardAgent in
// ssh_config(5) says; sessions must ask for it (SessionRequest.ForwardAgent).
// Each of the host's connections is told to the agent as a forwarded one
// (session-bind@openssh.com), so that keys with destination constraints keep
// them. The Client owns the goroutines, which end with the connection. The
// error is a *ForwardAgentError; calling it again is one.
func (c *Client) ForwardAgent() error {
	if c.agent == nil || c.agent.socket == "" {
		return &ForwardAgentError{Err: errNoAgent}
	}
	socket := c.agent.socket
	if err := agentExists(socket); err != nil {
		return &ForwardAgentError{socket, err}
	}
	in := c.conn.HandleChannelOpen(agentChannel)
	if in == nil {
		return &ForwardAgentError{socket, errors.New("it is forwarded already")}
	}
	c.wg.Go(func() { c.agent.serve(in) })
	return nil
}

// serve takes the host's channels until the connection ends.
func (f *agentForward) serve(in <-chan ssh.NewChannel) {
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
				f.handle(ctx, newCh)
			})
		default:
			_ = newCh.Reject(ssh.ResourceShortage, "too many connections to the agent")
		}
	}
}

// handle is one connection of the host's (client_request_agent in OpenSSH's
// clientloop.c). ctx ends with the connection to the host.
func (f *agentForward) handle(ctx context.Context, newCh ssh.NewChannel) {
	conn, err := f.dial(ctx)
	if err != nil {
		f.log.Warn("forwarded ssh-agent not reached", "err", err)
		_ = newCh.Reject(ssh.ConnectionFailed, "no agent")
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	ch, reqs, err := newCh.Accept()
	if err != nil {
		return
	}
	relay(newChannelConn(ch, reqs), conn)
}

// dial connects to the agent, and binds the connection before the host's first
// byte.
func (f *agentForward) dial(ctx context.Context) (net.Conn, error) {
	dialCtx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := dialAgent(dialCtx, f.socket)
	if err != nil || f.binding == nil {
		return conn, err
	}
	_ = conn.SetDeadline(time.Now().Add(agentTimeout))
	// A client that cannot close reads its one answer and nothing more.
	if err := f.binding.tell(agent.NewClient(struct{ io.ReadWriter }{conn}), true); err != nil {
		f.log.Debug("ssh-agent not bound to the host", "err", err)
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

// relay copies both ways until both have ended, or one has failed.
func relay(ch *channelConn, conn net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(ch, conn)
		_ = ch.Close()
	})
	_, _ = io.Copy(conn, ch)
	if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		_ = conn.Close()
	}
	wg.Wait()
	<-ch.done
}

// agentExists is ssh's own check (ssh.c); a Windows pipe shows itself only when
// it is opened.
func agentExists(socket string) error {
	if isPipe(socket) {
		return nil
	}
	_, err := os.Stat(socket)
	return err
}
