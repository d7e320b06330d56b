package share

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// maxStatus bounds a status's line, in bytes.
const maxStatus = 64 << 10

// The waits of a process that finds the lock taken and nobody listening yet, or
// not any more.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 200 * time.Millisecond
)

// A Lease is a connection to a target's bridge, which is needed for as long as
// it is open. It ends with the context that it was asked for with, and with this
// process.
type Lease struct {
	conn   net.Conn
	free   func() bool // of the context
	lines  *bufio.Reader
	ending Ending // as it was said last; owned by Next
}

// Lease asks the target's bridge to stay. The error is ErrNobody if there is none.
func (d *Dir) Lease(ctx context.Context, id string) (*Lease, error) {
	return d.open(ctx, id, askLease)
}

// Watch is a Lease for which no bridge stays.
func (d *Dir) Watch(ctx context.Context, id string) (*Lease, error) {
	return d.open(ctx, id, askWatch)
}

// Status asks the target's bridge once; so do the others, for something. The
// error is ErrNobody if there is none.
func (d *Dir) Status(ctx context.Context, id string) (Status, error) {
	return d.once(ctx, id, askStatus)
}

// Pin makes the bridge stay without leases.
func (d *Dir) Pin(ctx context.Context, id string) (Status, error) { return d.once(ctx, id, askPin) }

// Yield ends a bridge that is not up, and returns when its process lets another
// take its place. Status tells when it was up instead.
func (d *Dir) Yield(ctx context.Context, id string) (Status, error) {
	return d.end(ctx, id, askYield)
}

// Replace is Yield for a bridge that may be up.
func (d *Dir) Replace(ctx context.Context, id string) (Status, error) {
	return d.end(ctx, id, askReplace)
}

// Stop takes a bridge down and returns when it has gone. Those that used it get
// ErrTakenDown.
func (d *Dir) Stop(ctx context.Context, id string) (Status, error) { return d.end(ctx, id, askStop) }

func (d *Dir) end(ctx context.Context, id string, ask verb) (Status, error) {
	watch, err := d.Watch(ctx, id)
	if err != nil {
		return Status{}, err
	}
	defer watch.Close()
	status, err := d.once(ctx, id, ask)
	if err != nil || status.State != Stopping {
		return status, err
	}
	for err == nil {
		_, err = watch.Next()
	}
	return status, context.Cause(ctx)
}

// Ensure returns a lease of the target's bridge. Where there is none it calls
// start, which is to make a process that calls Hold, and tries again: another
// process may have been quicker.
func (d *Dir) Ensure(ctx context.Context, id string, start func(context.Context) error) (*Lease, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		lease, err := d.Lease(ctx, id)
		if !errors.Is(err, ErrNobody) {
			return lease, err
		}
		if err := d.startIfFree(ctx, id, start); err != nil {
			return nil, err
		}
		if lease, err := d.Lease(ctx, id); !errors.Is(err, ErrNobody) {
			return lease, err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// startIfFree starts nothing where the lock is held: that process is about to
// listen, or about to end.
func (d *Dir) startIfFree(ctx context.Context, id string, start func(context.Context) error) error {
	lock, err := d.lock(id)
	switch {
	case errors.Is(err, ErrHeld):
		return nil
	case err != nil:
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	return start(ctx)
}

func (d *Dir) open(ctx context.Context, id string, ask verb) (*Lease, error) {
	if !idForm.MatchString(id) {
		return nil, badID(id)
	}
	conn, err := d.dial(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := send(conn, request{Version, ask}); err != nil {
		_ = conn.Close()
		return nil, ErrNobody // it was about to end
	}
	free := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &Lease{conn: conn, free: free, lines: bufio.NewReaderSize(conn, 4096)}, nil
}

func (d *Dir) once(ctx context.Context, id string, ask verb) (Status, error) {
	lease, err := d.open(ctx, id, ask)
	if err != nil {
		return Status{}, err
	}
	defer lease.Close()
	_ = lease.conn.SetReadDeadline(time.Now().Add(answerTimeout))
	return lease.Next()
}

// Next waits for the next status; the first is there at once. The error is
// ErrNobody when the bridge has ended, ErrTakenDown among them, or the Lease is
// closed or its context over.
func (l *Lease) Next() (Status, error) {
	var line []byte
	for {
		part, err := l.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) < maxStatus:
			continue
		case err != nil && l.ending == TakenDown:
			return Status{}, ErrTakenDown
		case err != nil:
			return Status{}, ErrNobody
		}
		break
	}
	var status Status
	if err := json.Unmarshal(line, &status); err != nil {
		return Status{}, fmt.Errorf("the bridge's status: %w", err)
	}
	if status.Version != Version {
		return Status{}, &VersionError{status.Version}
	}
	l.ending = status.Ending
	return status, nil
}

// Close gives the bridge back. It may be called from any goroutine, and ends a
// Next that is waiting.
func (l *Lease) Close() error {
	l.free()
	return l.conn.Close()
}

// A VersionError says that the bridge is one of another version of gpg-bridge.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the bridge speaks version %d of the control protocol, not %d", e.Version, Version)
}

// Hint says what to do.
func (e *VersionError) Hint() string {
	return "end the bridges of the other version with it: gpg-bridge down --all"
}
