package sshfwd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/private"
)

// agentTimeout is for what an agent does without its user.
const agentTimeout = 10 * time.Second

// agentConn is a connection to the ssh-agent.
type agentConn struct {
	conn net.Conn
	stop func() bool
	agent.ExtendedAgent
}

// openAgent connects to the agent. Cancelling ctx closes the connection. It
// returns nil, nil if there is none to connect to.
func openAgent(ctx context.Context, c *Config) (*agentConn, error) {
	path := c.agentSocket()
	if path == "" {
		return nil, nil
	}
	dialCtx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	conn, err := dialAgent(dialCtx, path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &agentConn{conn: conn, stop: stop, ExtendedAgent: agent.NewClient(conn)}, nil
}

func (a *agentConn) close() {
	if a != nil {
		a.stop()
		_ = a.conn.Close()
	}
}

// agentSocket is IdentityAgent (ssh_config(5)), or SSH_AUTH_SOCK.
func (c *Config) agentSocket() string {
	switch setting := c.IdentityAgent; {
	case strings.EqualFold(setting, "none"):
		return ""
	case setting == "" || setting == "SSH_AUTH_SOCK":
		if socket := os.Getenv("SSH_AUTH_SOCK"); socket != "" {
			return socket
		}
		return defaultAgent
	case strings.HasPrefix(setting, "$"):
		return os.Getenv(strings.Trim(setting[1:], "{}"))
	default:
		return setting
	}
}

// agentIdentities are the agent's keys in its order. Without an agent, or with
// one that does not answer, there are none.
func (a *authenticator) agentIdentities() []*identity {
	conn, err := openAgent(a.ctx, a.config)
	if err != nil {
		a.log.Warn("no ssh-agent", "err", err)
	}
	if conn == nil {
		return nil
	}
	a.agent = conn
	_ = conn.conn.SetDeadline(time.Now().Add(agentTimeout))
	a.bind(conn)
	keys, err := conn.List()
	if err != nil {
		a.log.Warn("ssh-agent does not list its keys", "err", err)
		return nil
	}
	_ = conn.conn.SetDeadline(time.Time{})
	var ids []*identity
	for _, key := range keys {
		public, err := ssh.ParsePublicKey(key.Blob)
		if err != nil {
			a.log.Warn("key of the ssh-agent not used", "key", key.Comment, "err", err)
			continue
		}
		ids = append(ids, &identity{label: key.Comment, public: public, agent: &agentSigner{conn, public}})
	}
	return ids
}

// bind tells the agent which host this is: it signs for keys with destination
// constraints (ssh-add -h) only then (get_agent_identities in OpenSSH's
// sshconnect2.c).
func (a *authenticator) bind(conn *agentConn) {
	binding, err := a.tap.binding(a.sessionID)
	if err == nil {
		err = binding.tell(conn, false)
	}
	if err != nil {
		a.log.Debug("ssh-agent not bound to the host", "err", err)
	}
}

// addToAgent gives the agent a key that was read from a file, as AddKeysToAgent
// says (maybe_add_key_to_agent in OpenSSH's sshconnect2.c). Where it cannot, the
// log-in goes on. Unlike ssh, it gives no key to an agent of another user's, as
// one may have put where a dead agent's socket was.
func (a *authenticator) addToAgent(f *keyFile) {
	how := a.config.AddKeysToAgent
	if !how.Add || a.agent == nil || f.added {
		return
	}
	f.added = true
	if err := private.CheckPeer(a.agent.conn); err != nil {
		a.log.Warn("key not added to the ssh-agent", "key", f.path, "err", err)
		return
	}
	comment := cmp.Or(f.comment, f.path)
	question := fmt.Sprintf("Add key %s (%s) to agent?", f.path, comment)
	if how.Ask && (a.prompter == nil || !a.prompter.Confirm(a.ctx, printableLine(question))) {
		a.log.Debug("key not added to the ssh-agent: not allowed", "key", f.path)
		return
	}
	_ = a.agent.conn.SetDeadline(time.Now().Add(agentTimeout))
	err := a.agent.Add(agent.AddedKey{
		PrivateKey: f.raw, Comment: comment,
		LifetimeSecs: uint32(how.Lifetime / time.Second), ConfirmBeforeUse: how.Confirm,
	})
	_ = a.agent.conn.SetDeadline(time.Time{})
	a.log.Debug("key added to the ssh-agent", "key", f.path, "err", err)
}

// agentSigner signs with a key of the agent's.
type agentSigner struct {
	agent  *agentConn
	public ssh.PublicKey
}

func (s *agentSigner) PublicKey() ssh.PublicKey { return s.public }

func (s *agentSigner) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	return s.agent.Sign(s.public, data)
}

func (s *agentSigner) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	switch algorithm {
	case ssh.KeyAlgoRSASHA256:
		return s.agent.SignWithFlags(s.public, data, agent.SignatureFlagRsaSha256)
	case ssh.KeyAlgoRSASHA512:
		return s.agent.SignWithFlags(s.public, data, agent.SignatureFlagRsaSha512)
	}
	return s.agent.Sign(s.public, data)
}
