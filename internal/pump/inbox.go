package pump

import (
	"net"
	"os"
	"sync"
)

// maxEarly bounds what is read before the connection is there. ssh says its
// version and its first proposal, some 2 KiB, and then waits.
const maxEarly = 64 << 10

// An inbox holds what comes in before the connection is there.
type inbox struct {
	mu    sync.Mutex
	moved sync.Cond // conn or gone was set
	early []byte
	conn  net.Conn
	gone  bool
	err   error // of the write of early
}

func newInbox() *inbox {
	box := &inbox{}
	box.moved.L = &box.mu
	return box
}

// connect sends what came in so far, and makes fill return with the connection
// after the read that it is in.
func (b *inbox) connect(conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	if len(b.early) > 0 {
		_, b.err = conn.Write(b.early)
		b.early = nil
	}
	b.moved.Signal()
}

// abandon makes fill return: there will be no connection.
func (b *inbox) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	b.moved.Signal()
}

// fill reads until there is a connection, and passes on what it has read. note
// sees it.
func (b *inbox) fill(in *os.File, note func([]byte)) (net.Conn, error) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := in.Read(buffer)
		if n > 0 {
			note(buffer[:n])
		}
		conn, putErr := b.put(buffer[:n])
		if err == nil {
			err = putErr
		}
		if conn != nil || err != nil {
			return conn, err
		}
	}
}

// put waits while there is too much.
func (b *inbox) put(data []byte) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.conn == nil && !b.gone && len(b.early)+len(data) > maxEarly {
		b.moved.Wait()
	}
	switch {
	case b.gone:
		return nil, net.ErrClosed
	case b.conn == nil:
		b.early = append(b.early, data...)
		return nil, nil
	case b.err != nil:
		return nil, b.err
	}
	_, err := b.conn.Write(data)
	return b.conn, err
}
