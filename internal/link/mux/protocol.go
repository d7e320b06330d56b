package mux

import (
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"
)

// protocolVersion is SSHMUX_VER in OpenSSH's mux.c, since 5.4.
const protocolVersion = 4

// The messages of PROTOCOL.mux section 11 that are used here.
const (
	msgHello       = 0x00000001
	askNewSession  = 0x10000002
	askAlive       = 0x10000004
	askTerminate   = 0x10000005
	askOpenForward = 0x10000006
	askCloseFwd    = 0x10000007

	askStopListening = 0x10000009

	sayOK               = 0x80000001
	sayPermissionDenied = 0x80000002
	sayFailure          = 0x80000003
	sayExitMessage      = 0x80000004
	sayAlive            = 0x80000005
	saySessionOpened    = 0x80000006
)

// The types of forwards, and the port that marks the host as a path (PROTOCOL.mux section 6).
const (
	forwardLocal  = 1
	forwardRemote = 2
	portIsPath    = 0xfffffffe
)

// noEscape is the escape character of a session that has none (section 2).
const noEscape = 0xffffffff

// maxMessage bounds the memory that a master can make us use. Its messages have some hundred
// bytes: the longest has a path in it.
const maxMessage = 64 << 10

type header struct {
	Kind uint32
	ID   uint32 // of the request
}

// forwardBody is the body of askOpenForward and askCloseFwd.
type forwardBody struct {
	Type        uint32
	ListenHost  string
	ListenPort  uint32
	ConnectHost string
	ConnectPort uint32
}

// streamForward forwards a socket to a socket.
func streamForward(kind uint32, listen, connect string) forwardBody {
	return forwardBody{Type: kind, ListenHost: listen, ListenPort: portIsPath, ConnectHost: connect, ConnectPort: portIsPath}
}

// sessionBody is the body of askNewSession; the flags are uint32s in mux.c.
type sessionBody struct {
	Reserved                   string
	TTY, X11, Agent, Subsystem uint32
	Escape                     uint32
	Term                       string
	Command                    string
}

// A message is a message from the master, without its length.
type message struct {
	Kind uint32
	ID   uint32 // of the request; of the session in sayExitMessage
	Rest []byte `ssh:"rest"`
}

func (m *message) number() (uint32, error) {
	var body struct{ Value uint32 }
	err := ssh.Unmarshal(m.Rest, &body)
	return body.Value, err
}

func (m *message) text() string {
	var body struct{ Text string }
	if ssh.Unmarshal(m.Rest, &body) != nil {
		return ""
	}
	return body.Text
}

// writeMessage writes a message with its length, in one Write.
func writeMessage(w io.Writer, body []byte) error {
	packet := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err := w.Write(append(packet, body...))
	return err
}

// readMessage reads one message, and no byte more.
func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxMessage {
		return nil, fmt.Errorf("%w: a message of %d bytes", errProtocol, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	return body, nil
}
