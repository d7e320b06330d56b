package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync"
)

// Messages of the first key exchange (RFC 4253, 12; RFC 5656, 7.1; RFC 4419, 5).
const (
	msgNewKeys     = 21
	msgKexReply    = 31 // of ECDH, ML-KEM and fixed groups; a group in RFC 4419
	msgKexGEXReply = 33
)

// maxTapped is how much a server can make us hold before it sends NEWKEYS, in bytes: as
// much as the largest packet that x/crypto accepts.
const maxTapped = 256 << 10

// A Tap is the connection below SSH. It keeps the server's reply in the first key
// exchange, which is in the clear, because x/crypto does not show the host key's
// signature that is in it. From the server's NEWKEYS on it only passes on what it reads.
type Tap struct {
	net.Conn

	mu    sync.Mutex
	ident bool   // the server's version string has been read
	data  []byte // received and not yet parsed
	over  bool   // nothing more is parsed
	ended error  // of the first Read that failed
	reply []byte // payload of the last reply, without its message number
}

// NewTap taps a connection, from which the caller reads through the Tap only.
func NewTap(conn net.Conn) *Tap { return &Tap{Conn: conn} }

// Read reads from the connection.
func (t *Tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.feed(p[:max(n, 0)])
	if err != nil {
		t.mu.Lock()
		if t.ended == nil {
			t.ended = err
		}
		t.mu.Unlock()
	}
	return n, err
}

// Reply is the server's reply in the first key exchange, without its message
// number.
func (t *Tap) Reply() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reply
}

// Lost is the error with which reading from the connection ended, nil if it has not: io.EOF if
// the server closed it, net.ErrClosed if we did.
func (t *Tap) Lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *Tap) feed(data []byte) {
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
func (t *Tap) takeIdent() bool {
	line, rest, found := bytes.Cut(t.data, []byte("\n"))
	if t.ident || !found {
		return false
	}
	t.ident, t.data = bytes.HasPrefix(line, []byte("SSH-")), rest
	return true
}

// takePacket takes a packet in the clear (RFC 4253, 6).
func (t *Tap) takePacket() bool {
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

func (t *Tap) note(message byte, payload []byte) {
	switch message {
	case msgKexReply, msgKexGEXReply:
		t.reply = bytes.Clone(payload)
	case msgNewKeys:
		t.over = true
	}
}
