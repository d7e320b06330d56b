package wire

import (
	"net"
	"runtime/metrics"
)

const (
	// MaxHeld bounds what the process holds while a server keeps sending, in
	// bytes. Package ssh gives every channel a window of 2 MiB, which a server
	// may fill whether or not anybody reads, even with packets of one byte,
	// which take fifty times their size. 128 full windows are allowed; no gpg and
	// no useful forwarded port comes near that.
	MaxHeld = 256 << 20
	// heldInterval is how much may be received between two checks, in bytes.
	heldInterval = 2 << 20
)

// ErrHeldTooMuch is the Err of a *link.LostError: the server kept sending what nobody
// read, up to MaxHeld.
var ErrHeldTooMuch error = &heldTooMuchError{}

type heldTooMuchError struct{}

func (*heldTooMuchError) Error() string {
	return "given up, because the server sends without end what nobody reads"
}

// Hopeless is true: see link.Hopeless.
func (*heldTooMuchError) Hopeless() bool { return true }

// Hint says what to do.
func (*heldTooMuchError) Hint() string {
	return "if you forward ports, end what asks for data behind them and does not read it; else have the host looked at, it means harm"
}

// A guard is the connection below SSH. It closes the connection once the process holds
// more than limit bytes, as the garbage collector measures. It checks only when something
// is received, so an idle connection costs nothing. Another connection may have filled the
// memory; but this one was adding to it.
type guard struct {
	net.Conn
	limit uint64
	left  int // bytes until the next check; Read's
}

// Guard is the connection, whose Read closes it and returns ErrHeldTooMuch once the
// process holds more than limit bytes; see MaxHeld.
func Guard(conn net.Conn, limit uint64) net.Conn {
	return &guard{Conn: conn, limit: limit, left: heldInterval}
}

// Read reads from the connection.
func (g *guard) Read(p []byte) (int, error) {
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
