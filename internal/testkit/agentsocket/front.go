package agentsocket

import (
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gpg-bridge/internal/testkit/env"
)

// A Fault is what a Front does wrong. It applies to connections accepted and files written
// after it was set.
type Fault int

const (
	NoFault     Fault = iota
	NoGreeting        // takes the credentials, and then says nothing
	NeverReads        // accepts, and does nothing at all
	WrongNonce        // the file has another nonce than the server wants
	WrongEcho         // Cygwin only: does not know the secret that it was sent
	HangsUpLate       // takes the credentials, and then closes
)

// A Front listens on 127.0.0.1, writes the socket file for it, and connects the clients that it
// admits to the agent.
type Front struct {
	// SocketFile is the path of the file, in a directory of the Front's own.
	SocketFile string

	kind    kind
	backend string

	mu       sync.Mutex
	nonce    [16]byte
	fault    Fault
	listener net.Listener
	conns    map[net.Conn]struct{} // nil once closed

	done chan struct{}  // closed by Close
	wg   sync.WaitGroup // the accept loops and connections; Close waits
}

// StartNative starts a libassuan socket (assuan-socket.c, _assuan_sock_bind and
// _assuan_sock_check_nonce) in front of the Unix socket at backend. It is
// closed when the test ends.
func StartNative(t testing.TB, backend string, nonce [16]byte) *Front {
	t.Helper()
	return start(t, kind{format: nativeFile, admit: admitNative}, backend, nonce)
}

// StartCygwin starts a Cygwin socket (fhandler/socket_local.cc,
// af_local_accept) in front of the Unix socket at backend. It is closed when
// the test ends.
func StartCygwin(t testing.TB, backend string, nonce [16]byte) *Front {
	t.Helper()
	return start(t, kind{format: cygwinFile, admit: admitCygwin}, backend, nonce)
}

func start(t testing.TB, k kind, backend string, nonce [16]byte) *Front {
	t.Helper()
	f := &Front{
		SocketFile: filepath.Join(env.ShortDir(t), "S.gpg-agent.extra"),
		kind:       k, backend: backend, nonce: nonce,
		conns: map[net.Conn]struct{}{}, done: make(chan struct{}),
	}
	if err := f.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return f
}

// listen opens a port, starts its accept loop and writes the file.
func (f *Front) listen() error {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listener = listener
	f.wg.Go(func() { f.acceptLoop(listener) })
	return f.writeFile()
}

// writeFile replaces the file with a new, private one, as the agent does. mu is held.
func (f *Front) writeFile() error {
	nonce := f.nonce
	if f.fault == WrongNonce {
		nonce[7] ^= 0x80
	}
	port := f.listener.Addr().(*net.TCPAddr).Port
	fresh := f.SocketFile + ".new"
	if err := os.WriteFile(fresh, f.kind.format(port, nonce), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, f.SocketFile)
}

// SetFault makes the Front misbehave, or behave again.
func (f *Front) SetFault(fault Fault) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
	return f.writeFile()
}

// Restart does what the agent's restart does: every connection ends, and the
// file says another port and another nonce.
func (f *Front) Restart() error {
	f.mu.Lock()
	old, nonce := f.listener, [16]byte{}
	_, _ = rand.Read(nonce[:])
	f.nonce = nonce
	f.mu.Unlock()
	// The new port is opened first, so that it cannot be the old one again.
	if err := f.listen(); err != nil {
		return err
	}
	err := old.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeConns()
	return err
}

// Reset ends every connection with a reset (TCP's RST), as a crash may. Later clients are
// served.
func (f *Front) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	f.closeConns()
}

// Close ends every connection and returns once all of the Front's goroutines have ended. The
// file stays, as that of a killed agent does.
func (f *Front) Close() error {
	f.mu.Lock()
	if f.conns == nil {
		f.mu.Unlock()
		return nil
	}
	err := f.listener.Close()
	f.closeConns()
	f.conns = nil
	close(f.done)
	f.mu.Unlock()
	f.wg.Wait()
	return err
}

func (f *Front) closeConns() {
	for conn := range f.conns {
		_ = conn.Close()
	}
}

func (f *Front) acceptLoop(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { f.serve(conn) })
	}
}

// track reports whether the connection may live; it is closed with the Front.
func (f *Front) track(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		return false
	}
	f.conns[conn] = struct{}{}
	return true
}

func (f *Front) drop(conn net.Conn) {
	_ = conn.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
}

func (f *Front) serve(conn net.Conn) {
	defer f.drop(conn)
	if !f.track(conn) {
		return
	}
	f.mu.Lock()
	nonce, fault := f.nonce, f.fault
	f.mu.Unlock()
	if fault == NeverReads {
		<-f.done
		return
	}
	if f.kind.admit(conn, nonce, fault) != nil {
		return // without an answer, as both servers do
	}
	switch fault {
	case NoGreeting:
		_, _ = io.Copy(io.Discard, conn)
	case HangsUpLate:
	default:
		f.splice(conn)
	}
}

// splice passes bytes both ways until both directions have ended.
func (f *Front) splice(conn net.Conn) {
	agent, err := net.Dial("unix", f.backend)
	if err != nil {
		return
	}
	defer f.drop(agent)
	if !f.track(agent) {
		return
	}
	var toAgent sync.WaitGroup
	toAgent.Go(func() {
		_, _ = io.Copy(agent, conn)
		_ = agent.(*net.UnixConn).CloseWrite()
	})
	_, _ = io.Copy(conn, agent)
	// The agent is done; this tells a client that still sends.
	_ = conn.Close()
	toAgent.Wait()
}
