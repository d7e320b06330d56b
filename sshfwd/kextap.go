package sshfwd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Messages of the first key exchange (RFC 4253, 12; RFC 5656, 7.1; RFC 4419, 5).
const (
	msgNewKeys     = 21
	msgKexReply    = 31 // of ECDH, ML-KEM and fixed groups; a group in RFC 4419
	msgKexGEXReply = 33
)

// maxTapped bounds what a server can make us hold before it sends NEWKEYS; the
// largest packet that x/crypto accepts is as long.
const maxTapped = 256 << 10

// sessionBind is an extension of the agent protocol (OpenSSH's PROTOCOL.agent,
// section 1).
const sessionBind = "session-bind@openssh.com"

// A kexTap is the connection below SSH until the server's NEWKEYS, and only
// passes on what it reads after that. It keeps the server's reply in the first
// key exchange, which is in the clear, because x/crypto does not show the host
// key's signature that is in it.
type kexTap struct {
	net.Conn

	mu    sync.Mutex
	ident bool   // the server's version string is over
	data  []byte // received and not yet parsed
	over  bool
	ended bool   // a Read has failed
	reply []byte // payload of the last reply, without its message number
}

func (t *kexTap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.feed(p[:max(n, 0)])
	if err != nil {
		t.mu.Lock()
		t.ended = true
		t.mu.Unlock()
	}
	return n, err
}

// lost says that the connection has ended.
func (t *kexTap) lost() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *kexTap) feed(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.data = append(t.data, data...)
	for !t.over && (t.takeIdent() || t.takePacket()) {
	}
	if t.over || len(t.data) > maxTapped {
		t.over, t.data = true, nil
	}
}

// takeIdent takes a line before the first packet: the version string is the one
// that begins with SSH- (RFC 4253, 4.2).
func (t *kexTap) takeIdent() bool {
	line, rest, found := bytes.Cut(t.data, []byte("\n"))
	if t.ident || !found {
		return false
	}
	t.ident, t.data = bytes.HasPrefix(line, []byte("SSH-")), rest
	return true
}

// takePacket takes a packet in the clear (RFC 4253, 6).
func (t *kexTap) takePacket() bool {
	if !t.ident || len(t.data) < 4 {
		return false
	}
	length := int(binary.BigEndian.Uint32(t.data))
	if length > maxTapped || length < 2 {
		t.over = true
		return false
	}
	if len(t.data) < 4+length {
		return false
	}
	packet := t.data[4 : 4+length]
	t.data = t.data[4+length:]
	if end := length - int(packet[0]); end > 1 {
		t.note(packet[1], packet[2:end])
	}
	return true
}

func (t *kexTap) note(message byte, payload []byte) {
	switch message {
	case msgKexReply, msgKexGEXReply:
		t.reply = bytes.Clone(payload)
	case msgNewKeys:
		t.over = true
	}
}

// binding says what ties this connection to the server's host key, given the
// session identifier. The signature is verified here: where it does not fit,
// the reply was none, and nothing is bound.
func (t *kexTap) binding(sessionID []byte) (*hostBinding, error) {
	t.mu.Lock()
	reply := t.reply
	t.mu.Unlock()
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
	return &hostBinding{HostKey: parsed.HostKey, SessionID: bytes.Clone(sessionID), Signature: parsed.Signature}, nil
}

// hostBinding proves to an agent which host a connection leads to, so that it
// can hold a key to its destinations (ssh-add -h).
type hostBinding struct {
	HostKey, SessionID, Signature []byte
}

// tell binds a connection to the agent. forwarding: what is sent on it comes
// from the host. An agent that does not know the extension refuses; that is
// no matter for keys without constraints.
func (b *hostBinding) tell(to agent.ExtendedAgent, forwarding bool) error {
	_, err := to.Extension(sessionBind, ssh.Marshal(struct {
		HostKey, SessionID, Signature []byte
		Forwarding                    bool
	}{b.HostKey, b.SessionID, b.Signature, forwarding}))
	return err
}
