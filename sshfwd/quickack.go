package sshfwd

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// smallRead is the size from which on the kernel acknowledges soon enough: two
// full segments of Ethernet.
const smallRead = 2 * 1448

// wireConn is the TCP connection below SSH, or what stands for it. It counts
// what arrives, and has the kernel acknowledge small packets at once: sshd up to
// 10.0 leaves Nagle's algorithm on until a session starts (set_nodelay, which in
// session.c only do_exec_pty and do_exec_no_pty call), so that its second small
// packet waits for our acknowledgement of the first, which the kernel would
// delay by 40 ms. Any command run on the host has ended that.
//
// Its goroutine, the wireWriter's, ends with Close, which must be called.
type wireConn struct {
	net.Conn
	raw   syscall.RawConn // nil where there is no socket to set the option on
	quick func(fd uintptr)
	bytes atomic.Uint64

	noNagle atomic.Bool // the server has ended it for its side

	out     *wireWriter // nil where each write is to go through
	closing sync.Once
}

func newWireConn(conn net.Conn) *wireConn {
	w := &wireConn{Conn: conn, quick: quickAck}
	if tcp, ok := conn.(*net.TCPConn); ok {
		w.out = newWireWriter(tcp)
		if quickAckExists {
			w.raw, _ = tcp.SyscallConn()
		}
	}
	return w
}

// Read reads from the connection. The kernel forgets the option whenever it
// sees fit (tcp(7), TCP_QUICKACK), so it is set again each time.
func (w *wireConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.bytes.Add(uint64(n))
	if w.raw != nil && n > 0 && n < smallRead && !w.noNagle.Load() {
		_ = w.raw.Control(w.quick)
	}
	return n, err
}

// Write writes to the connection; see wireWriter.
func (w *wireConn) Write(p []byte) (int, error) {
	if w.out == nil {
		return w.Conn.Write(p)
	}
	return w.out.Write(p)
}

// Close closes the connection behind what was written.
func (w *wireConn) Close() error {
	if w.out != nil {
		w.closing.Do(w.out.close)
	}
	return w.Conn.Close()
}

// received is the number of bytes that have arrived.
func (w *wireConn) received() uint64 { return w.bytes.Load() }

// sessionStarted says that a command was started on the host.
func (w *wireConn) sessionStarted() {
	if w != nil {
		w.noNagle.Store(true)
	}
}
