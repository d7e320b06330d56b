package sshfwd

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
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
