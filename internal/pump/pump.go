package pump

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// bufferSize is how much one read takes.
	bufferSize = 128 << 10

	// lastWords is how long the host may be silent once our input has ended.
	// Who closed it may be dead, and the host behind a link that is, too.
	lastWords = time.Second
)

// A Pump moves bytes between two files and a connection. The zero value is
// ready; its methods other than Run may be called from any goroutine.
type Pump struct {
	// Watch, if it is set, sees what goes to the host, in order, until it
	// returns false. It must not block, nor keep or change it.
	Watch func(data []byte) bool

	sent, received atomic.Int64
}

// Sent is how many bytes went to the host so far.
func (p *Pump) Sent() int64 { return p.sent.Load() }

// Run reads from in at once, dials, and copies until either side is done: the
// host's end is the end, that of in is passed on first and leaves the host
// lastWords to answer. It returns nil then, ctx's cause when that ended, and
// else dial's error, or that of the connection. connected is called when there
// is one; it must not block.
//
// Run does not wait for a read or a write of in and out that is under way: it
// ends with these files.
func (p *Pump) Run(ctx context.Context, in, out *os.File, dial func(context.Context) (net.Conn, error), connected func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	box := newInbox()
	input := make(chan error, 1)
	go func() { input <- p.send(box, in) }()
	conn, err := dialUnlessOver(ctx, dial, input)
	if err != nil || conn == nil {
		box.abandon()
		return err
	}
	defer conn.Close()
	connected()
	box.connect(conn)
	output := make(chan error, 1)
	go func() { output <- p.receive(out, conn) }()
	return p.wait(ctx, conn, input, output)
}

// dialUnlessOver returns nothing where the input ends before the connection is
// there: nobody waits for it any more.
func dialUnlessOver(ctx context.Context, dial func(context.Context) (net.Conn, error), input <-chan error) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type dialled struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := dial(ctx)
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		if d.err != nil && ctx.Err() != nil {
			d.err = context.Cause(ctx)
		}
		return d.conn, d.err
	case <-input:
		cancel()
		if d := <-done; d.conn != nil {
			_ = d.conn.Close()
		}
		return nil, nil
	}
}

func (p *Pump) wait(ctx context.Context, conn net.Conn, input, output <-chan error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-output:
		return err
	case err := <-input:
		if err != nil {
			return err
		}
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	silence := time.NewTicker(lastWords)
	defer silence.Stop()
	for seen := p.received.Load(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-output:
			return err
		case <-silence.C:
		}
		now := p.received.Load()
		if now == seen {
			return nil
		}
		seen = now
	}
}

// send moves the input to the host.
func (p *Pump) send(box *inbox, in *os.File) error {
	conn, err := box.fill(in, p.goes)
	if conn == nil || err != nil {
		return endless(err)
	}
	return endless(copyCounted(conn, in, p.goes))
}

// receive moves what the host says to the output.
func (p *Pump) receive(out *os.File, conn net.Conn) error {
	return endless(copyCounted(out, conn, func(data []byte) { p.received.Add(int64(len(data))) }))
}

// goes notes what is about to go to the host. Only send's goroutine calls it.
func (p *Pump) goes(data []byte) {
	p.sent.Add(int64(len(data)))
	if p.Watch != nil && !p.Watch(data) {
		p.Watch = nil
	}
}

func endless(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func copyCounted(to io.Writer, from io.Reader, note func([]byte)) error {
	buffer := make([]byte, bufferSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			note(buffer[:n])
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}
