package sshfwd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/usertext"
)

// A connList has what runs over a connection besides the session, for ~#.
type connList struct {
	mu   sync.Mutex
	last int
	open map[int]string
}

// add notes a connection of a channel type, with the data that its channel was opened with. The
// caller calls left when it has ended.
func (l *connList) add(kind string, extra []byte) (left func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[int]string)
	}
	l.last++
	number := l.last
	l.open[number] = connName(kind, extra)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, number)
	}
}

// text is the list in the form of ssh's (channel_open_message in OpenSSH's channels.c), but for
// the state of its buffers.
func (l *connList) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	b.WriteString("The following connections are open:\r\n  #0 client-session ([session])\r\n")
	for _, number := range slices.Sorted(maps.Keys(l.open)) {
		fmt.Fprintf(&b, "  #%d %s\r\n", number, l.open[number])
	}
	return b.String()
}

// connName says where a connection leads to, or on the server's host comes from.
func connName(kind string, extra []byte) string {
	var tcp TCPChannel
	var socket struct {
		Path string
		Rest []byte `ssh:"rest"`
	}
	name := kind
	switch kind {
	case directTCP, ForwardedTCP:
		if ssh.Unmarshal(extra, &tcp) == nil {
			name = fmt.Sprintf("%s port %d, connect from %s port %d", tcp.Host, tcp.Port, tcp.OriginHost, tcp.OriginPort)
		}
	case directStreamLocal, forwardedChannel:
		if ssh.Unmarshal(extra, &socket) == nil {
			name = socket.Path
		}
	}
	return fmt.Sprintf("%.300s ([%s])", usertext.Printable(name), kind)
}

// A TCPChannel is what a direct-tcpip or forwarded-tcpip channel is opened with (RFC 4254 section
// 7.2).
type TCPChannel struct {
	Host       string
	Port       uint32
	OriginHost string
	OriginPort uint32
}
