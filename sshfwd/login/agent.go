package login

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/private"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// AgentTimeout bounds what an agent does without waiting for its user.
const AgentTimeout = 10 * time.Second

// agentConn is a connection to the ssh-agent.
type agentConn struct {
	conn net.Conn
	stop func() bool
	agent.ExtendedAgent
}

// openAgent connects to the agent. The connection is closed when ctx ends. Where there is
// no agent to connect to it returns nil, nil.
func openAgent(ctx context.Context, c *config.Config) (*agentConn, error) {
	path := c.AgentSocket()
	if path == "" {
		return nil, nil
	}
	dialCtx, cancel := context.WithTimeout(ctx, AgentTimeout)
	defer cancel()
	conn, err := DialAgent(dialCtx, path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &agentConn{conn: conn, stop: stop, ExtendedAgent: agent.NewClient(conn)}, nil
}

// AgentExists returns an error if there is no file at an agent's path, which is what ssh
// checks (ssh.c). Whether a Windows pipe exists shows only when it is opened.
func AgentExists(socket string) error {
	if isPipe(socket) {
		return nil
	}
	_, err := os.Stat(socket)
	return err
}

func (a *agentConn) close() {
	if a != nil {
		a.stop()
		_ = a.conn.Close()
	}
}

// agentIdentities connects to the agent and returns its keys, in its order; none if there
// is no agent or it does not answer.
func (l *Login) agentIdentities() []*identity {
	conn, err := openAgent(l.ctx, l.Config)
	if err != nil {
		l.Log.Warn("no ssh-agent", "err", err)
	}
	if conn == nil {
		return nil
	}
	l.keys.agent = conn
	_ = conn.conn.SetDeadline(time.Now().Add(AgentTimeout))
	l.bind(conn)
	keys, err := conn.List()
	if err != nil {
		l.Log.Warn("ssh-agent does not list its keys", "err", err)
		return nil
	}
	_ = conn.conn.SetDeadline(time.Time{})
	var ids []*identity
	for _, key := range keys {
		public, err := ssh.ParsePublicKey(key.Blob)
		if err != nil {
			l.Log.Warn("key of the ssh-agent not used", "key", key.Comment, "err", err)
			continue
		}
		ids = append(ids, &identity{label: key.Comment, public: public, agent: &agentSigner{conn, public, key.Comment, l.TokenAsked}})
	}
	return ids
}

// bind tells the agent which host this is. Without that it does not sign with keys that
// have destination constraints (ssh-add -h; get_agent_identities in OpenSSH's
// sshconnect2.c).
func (l *Login) bind(conn *agentConn) {
	binding, err := NewBinding(l.Tap.Reply(), l.sessionID)
	if err == nil {
		err = binding.Tell(conn, false)
	}
	if err != nil {
		l.Log.Debug("ssh-agent not bound to the host", "err", err)
	}
}

// addToAgent adds a key that was read from a file to the agent, as AddKeysToAgent
// says (maybe_add_key_to_agent in OpenSSH's sshconnect2.c). If that fails, the
// log-in goes on. Unlike ssh, it gives no key to another user's agent, which may be
// listening where a dead agent's socket was.
func (l *Login) addToAgent(f *keyFile) {
	how := l.Config.AddKeysToAgent
	if !how.Add || l.keys.agent == nil || f.added {
		return
	}
	f.added = true
	if err := private.CheckPeer(l.keys.agent.conn); err != nil {
		l.Log.Warn("key not added to the ssh-agent", "key", f.path, "err", err)
		return
	}
	comment := cmp.Or(f.comment, f.path)
	question := fmt.Sprintf("Add key %s (%s) to agent?", f.path, comment)
	if how.Ask && (l.Asker == nil || !l.Asker.Confirm(l.ctx, usertext.Line(question))) {
		l.Log.Debug("key not added to the ssh-agent: not allowed", "key", f.path)
		return
	}
	_ = l.keys.agent.conn.SetDeadline(time.Now().Add(AgentTimeout))
	err := l.keys.agent.Add(agent.AddedKey{
		PrivateKey: f.raw, Comment: comment,
		LifetimeSecs: uint32(how.Lifetime / time.Second), ConfirmBeforeUse: how.Confirm,
	})
	_ = l.keys.agent.conn.SetDeadline(time.Time{})
	l.Log.Debug("key added to the ssh-agent", "key", f.path, "err", err)
}

// agentSigner signs with one of the agent's keys; see token.go.
type agentSigner struct {
	agent      *agentConn
	public     ssh.PublicKey
	comment    string
	tokenAsked func(Token) (answered func(TokenUse)) // Options.TokenAsked
}

func (s *agentSigner) PublicKey() ssh.PublicKey { return s.public }

// ask has the agent sign with that algorithm, or with the key's own.
func (s *agentSigner) ask(data []byte, algorithm string) (*ssh.Signature, error) {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256:
		return s.agent.SignWithFlags(s.public, data, agent.SignatureFlagRsaSha256)
	case ssh.KeyAlgoRSASHA512:
		return s.agent.SignWithFlags(s.public, data, agent.SignatureFlagRsaSha512)
	}
	return s.agent.Sign(s.public, data)
}
