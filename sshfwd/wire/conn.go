package wire

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// smallRead is the size of a read, in bytes, from which on the kernel acknowledges soon
// enough by itself: two full segments of Ethernet.
const smallRead = 2 * 1448

// Conn is the TCP connection below SSH, or the proxy's that takes its place. It counts
// what arrives, and has the kernel acknowledge small packets at once: sshd up to
// 10.0 leaves Nagle's algorithm on until a session starts (set_nodelay, which in
// session.c only do_exec_pty and do_exec_no_pty call), so that its second small
// packet waits for our acknowledgement of the first, which the kernel would
// delay by 40 ms. Once a command has run on the host, this is no longer needed.
//
// It has one goroutine, the writer's, which Close ends. Close must be called.
type Conn struct {
	net.Conn
	raw      syscall.RawConn // nil where there is no socket to set the option on
	received atomic.Uint64   // bytes

	noNagle atomic.Bool // the server has turned Nagle's algorithm off

	out     *writer // nil where each Write goes straight to Conn
	closing sync.Once
}

// New takes over a connection.
func New(conn net.Conn) *Conn {
	w := &Conn{Conn: conn}
	if tcp, ok := conn.(*net.TCPConn); ok {
		w.out = newWriter(tcp)
		if quickAckExists {
			w.raw, _ = tcp.SyscallConn()
		}
	}
	return w
}

// Read reads from the connection. The kernel may drop the option at any time (tcp(7),
// TCP_QUICKACK), so it is set again after each small read.
func (w *Conn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.received.Add(uint64(n))
	if w.raw != nil && n > 0 && n < smallRead && !w.noNagle.Load() {
		_ = w.raw.Control(quickAck)
	}
	return n, err
}

// Write writes to the connection; see writer.
func (w *Conn) Write(p []byte) (int, error) {
	if w.out == nil {
		return w.Conn.Write(p)
	}
	return w.out.Write(p)
}

// Close closes the connection after what was written, for which it waits 50 ms at most.
func (w *Conn) Close() error {
	if w.out != nil {
		w.closing.Do(w.out.close)
	}
	return w.Conn.Close()
}

// Received is the number of bytes that have arrived.
func (w *Conn) Received() uint64 { return w.received.Load() }

// SessionStarted notes that a command was started on the host; see Conn. w may be nil.
func (w *Conn) SessionStarted() {
	if w != nil {
		w.noNagle.Store(true)
	}
}
