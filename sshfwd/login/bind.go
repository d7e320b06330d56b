package login

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// sessionBind is an extension of the agent protocol (OpenSSH's PROTOCOL.agent,
// section 1).
const sessionBind = "session-bind@openssh.com"

// A Binding proves to an agent which host a connection leads to. With it, the agent can
// restrict keys to their destinations (ssh-add -h).
type Binding struct {
	HostKey, SessionID, Signature []byte
}

// NewBinding makes the binding of a connection from the server's reply in the first key
// exchange (wire.Tap.Reply) and the session identifier. It returns an error if the host
// key's signature in the reply is not one of that session.
func NewBinding(reply, sessionID []byte) (*Binding, error) {
	var parsed struct {
		HostKey, Ephemeral, Signature []byte
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(reply, &parsed); err != nil {
		return nil, fmt.Errorf("the reply of the key exchange is not understood: %w", err)
	}
	key, err := ssh.ParsePublicKey(parsed.HostKey)
	if err != nil {
		return nil, fmt.Errorf("the reply of the key exchange is not understood: %w", err)
	}
	if err := ssh.Unmarshal(parsed.Signature, &signature); err != nil {
		return nil, fmt.Errorf("the reply of the key exchange is not understood: %w", err)
	}
	if err := key.Verify(sessionID, &signature); err != nil {
		return nil, errors.New("the host key's signature is not of this session")
	}
	return &Binding{HostKey: parsed.HostKey, SessionID: bytes.Clone(sessionID), Signature: parsed.Signature}, nil
}

// Tell binds a connection to the agent. forwarding means that what is sent on it comes
// from the host. An agent that does not know the extension refuses, which does not
// matter for keys without constraints.
func (b *Binding) Tell(to agent.ExtendedAgent, forwarding bool) error {
	_, err := to.Extension(sessionBind, ssh.Marshal(struct {
		HostKey, SessionID, Signature []byte
		Forwarding                    bool
	}{b.HostKey, b.SessionID, b.Signature, forwarding}))
	return err
}
