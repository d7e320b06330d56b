package pinentry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sshSuffix is how the path of the socket for ssh ends.
const sshSuffix = ".ssh"

// ConnectionsOf lists the connections to the agent whose main socket has this path, with
// which the paths of its other sockets begin. Our own connections for ssh, those of a
// log-in or of a forwarded ssh-agent, count as foreign: a prompt may be for them, too.
//
// The error is ErrUnknown if the list is not certain. It must have a connection of our own
// that is not for ssh, or else such may not be listed at all. And none may be to another
// agent that had the same path before: an agent whose socket was removed or replaced goes
// on until its clients have gone.
func ConnectionsOf(main string) (Connections, error) {
	own, err := ownSockets()
	if err != nil {
		return nil, ErrUnknown
	}
	var listed []connection
	paths := map[string]*socketPath{}
	err = eachUnixSocket(func(s unixSocket) {
		if s.name != main && !strings.HasPrefix(s.name, main+".") {
			return
		}
		if paths[s.name] == nil {
			paths[s.name] = &socketPath{map[socketFile]bool{}, map[socketFile]bool{}}
		}
		paths[s.name].all[s.file] = true
		if s.connected {
			paths[s.name].used[s.file] = true
			listed = append(listed, connection{s.inode, s.clientEnd(own, main+sshSuffix)})
		}
	})
	if err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	for name, path := range paths {
		if !path.isCertain(name) {
			return nil, errors.Join(ErrUnknown, errTwoAgents)
		}
	}
	connections := newConnections(listed)
	if connections.clients(0).Own == 0 {
		return nil, ErrUnknown
	}
	return connections, nil
}

var errTwoAgents = errors.New("another agent has had the same socket path and is still there")

// A socketPath is a path with the files that have been at it, and those of them that have
// connections.
type socketPath struct{ all, used map[socketFile]bool }

// isCertain reports whether no connection at the path can be another agent's: there has been
// one file only, or all connections are to the one that is there now.
func (p *socketPath) isCertain(name string) bool {
	if len(p.used) == 0 || len(p.all) == 1 {
		return true
	}
	var now unix.Stat_t
	if unix.Stat(name, &now) != nil {
		return false
	}
	for file := range p.used {
		if file.inode != uint32(now.Ino) {
			return false
		}
	}
	return len(p.used) == 1
}

// ownSockets are the inodes of this process's sockets.
func ownSockets() (map[uint32]bool, error) {
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	own := map[uint32]bool{}
	for _, entry := range entries {
		var inode uint32
		target, err := os.Readlink(dir + entry.Name())
		if err != nil {
			continue
		}
		if n, _ := fmt.Sscanf(target, "socket:[%d]", &inode); n == 1 {
			own[inode] = true
		}
	}
	return own, nil
}

// A unixSocket is one with a path that is connected, or waits for connections.
type unixSocket struct {
	inode     uint32
	name      string // the path of the socket that it was accepted from, or its own
	file      socketFile
	connected bool
	peer      uint32 // the inode of a connection's other end, 0 when that was closed
}

// A socketFile is the file that was at a path when a socket was bound to it. It stays that
// socket's file even if another is put at the path.
type socketFile struct{ inode, device uint32 }

func (s unixSocket) clientEnd(own map[uint32]bool, forSSH string) clientEnd {
	switch {
	case s.peer == 0:
		return endGone
	case own[s.peer] && s.name != forSSH:
		return endOwn
	}
	return endForeign
}

// The request and its answers are those of linux/unix_diag.h, which sock_diag(7)
// describes; numbers are in the byte order of the machine. The kernel leaves out a
// connection that was not accepted yet (sk_diag_dump in its net/unix/diag.c).
const (
	showName    = 1 << 0 // UDIAG_SHOW_NAME
	showFile    = 1 << 1 // UDIAG_SHOW_VFS
	showPeer    = 1 << 2 // UDIAG_SHOW_PEER
	established = 1      // the states that are asked for: TCP_ESTABLISHED
	listening   = 10     // and TCP_LISTEN
	attrName    = 0      // UNIX_DIAG_NAME
	attrFile    = 1      // UNIX_DIAG_VFS
	attrPeer    = 2      // UNIX_DIAG_PEER

	diagHeader = 16 // struct unix_diag_msg
	diagPause  = 2  // seconds to wait for the next part of the kernel's answer
)

// eachUnixSocket visits the Unix sockets in this network namespace, which the kernel lists.
func eachUnixSocket(visit func(unixSocket)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: diagPause}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, diagRequest(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		done, err := parseDiag(buffer[:n], visit)
		if done || err != nil {
			return err
		}
	}
}

// diagRequest is a struct nlmsghdr followed by a struct unix_diag_req.
func diagRequest() []byte {
	order := binary.NativeEndian
	request := order.AppendUint32(nil, unix.NLMSG_HDRLEN+24)
	request = order.AppendUint16(request, unix.SOCK_DIAG_BY_FAMILY)
	request = order.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, make([]byte, 8)...) // sequence, port
	request = append(request, unix.AF_UNIX, 0, 0, 0)
	request = order.AppendUint32(request, 1<<established|1<<listening)
	request = order.AppendUint32(request, 0) // inode: all
	request = order.AppendUint32(request, showName|showFile|showPeer)
	return append(request, make([]byte, 8)...) // cookie
}

var (
	errDiag        = errors.New("malformed answer of sock_diag")
	errInterrupted = errors.New("the sockets changed while they were listed")
)

// parseDiag parses one part of the answer, and reports whether it was the last.
func parseDiag(part []byte, visit func(unixSocket)) (done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(part)
	if err != nil {
		return false, err
	}
	for _, message := range messages {
		switch {
		case message.Header.Flags&unix.NLM_F_DUMP_INTR != 0:
			return true, errInterrupted
		case message.Header.Type == unix.NLMSG_DONE:
			return true, nil
		case message.Header.Type == unix.NLMSG_ERROR, len(message.Data) < diagHeader:
			return true, errDiag
		}
		socket, err := parseAttributes(message.Data[diagHeader:])
		if err != nil {
			return true, err
		}
		socket.connected = message.Data[2] == established           // udiag_state
		socket.inode = binary.NativeEndian.Uint32(message.Data[4:]) // udiag_ino
		visit(socket)
	}
	return false, nil
}

// parseAttributes parses struct rtattrs: length, type, value, each at a multiple of 4.
func parseAttributes(data []byte) (unixSocket, error) {
	var s unixSocket
	order := binary.NativeEndian
	for len(data) >= unix.SizeofRtAttr {
		length := int(order.Uint16(data))
		if length < unix.SizeofRtAttr || length > len(data) {
			return s, errDiag
		}
		value := data[unix.SizeofRtAttr:length]
		switch order.Uint16(data[2:]) {
		case attrName:
			s.name = string(bytes.TrimRight(value, "\x00"))
		case attrFile:
			if len(value) != 8 {
				return s, errDiag
			}
			s.file = socketFile{order.Uint32(value), order.Uint32(value[4:])}
		case attrPeer:
			if len(value) != 4 {
				return s, errDiag
			}
			s.peer = order.Uint32(value)
		}
		data = data[min((length+3)&^3, len(data)):]
	}
	return s, nil
}
