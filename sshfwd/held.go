package sshfwd

import (
	"net"
	"runtime/metrics"
)

const (
	// maxHeld bounds what the process holds while a server keeps sending, in
	// bytes. Package ssh gives every channel a window of 2 MiB, which a server
	// may fill whether anybody reads or not, with packets of one byte, too,
	// that cost fifty times as much. 128 full windows are allowed; no gpg and
	// no forwarded port that is of any use comes near.
	maxHeld = 256 << 20
	// heldInterval is how much may be received between two looks.
	heldInterval = 2 << 20
)

// ErrHeldTooMuch is the Err of a *LostError: the server sent more, and faster,
// than anybody reads.
var ErrHeldTooMuch error = &heldTooMuchError{}

type heldTooMuchError struct{}

func (*heldTooMuchError) Error() string {
	return "given up, because the server sends without end what nobody reads"
}

// Hint says what to do.
func (*heldTooMuchError) Hint() string {
	return "if you forward ports, end what asks for data behind them and does not read it; else have the host looked at, it means harm"
}

// A heldGuard is the connection below SSH. A Read fails for good once the
// process holds more than limit bytes, measured by the garbage collector. It
// looks only when something is received, so that an idle connection costs
// nothing. It is not the one to blame where another connection has filled the
// memory, but then it adds to that.
type heldGuard struct {
	net.Conn
	limit uint64
	left  int // bytes until the next look; owned by Read
}

func newHeldGuard(conn net.Conn, limit uint64) *heldGuard {
	return &heldGuard{Conn: conn, limit: limit, left: heldInterval}
}

// Read reads from the connection.
func (g *heldGuard) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if g.left -= n; g.left > 0 {
		return n, err
	}
	if heapLive() > g.limit {
		_ = g.Conn.Close()
		return 0, ErrHeldTooMuch
	}
	g.left = heldInterval
	return n, err
}

// heapLive is what was in use at the end of the last garbage collection, in
// bytes.
func heapLive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
