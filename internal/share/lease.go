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

// maxStatus is the length limit of a status, in bytes.
const maxStatus = 64 << 10

const (
	// quietTime is how long a bridge may send no status before it is asked whether it still
	// answers: it may have been stopped.
	quietTime = 5 * time.Second

	// maxUnheard is how often in a row it may not be listening when it is asked.
	maxUnheard = 3
)

// A Lease is a connection to a target's bridge, which stays for as long as the Lease is
// open. The Lease ends with the context that it was opened with, and with this process.
type Lease struct {
	dir      *Dir
	id       string
	conn     net.Conn
	cancel   func()       // ends the connection, and ask
	ask      func() error // returns an error if the bridge does not answer
	lines    *bufio.Reader
	answered bool   // it has sent a status; Next's
	ending   Ending // in the last status; Next's
	unheard  int    // how often in a row nobody was listening when it was asked; Next's
}

// Lease asks the target's bridge to stay. The error is ErrNobody if there is none.
// If the bridge does not answer, the first Next returns that.
func (d *Dir) Lease(ctx context.Context, id string) (*Lease, error) {
	return d.open(ctx, id, askLease)
}

// Watch opens a Lease for which the bridge does not stay.
func (d *Dir) Watch(ctx context.Context, id string) (*Lease, error) {
	return d.open(ctx, id, askWatch)
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
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	lease := &Lease{dir: d, id: id, conn: conn, cancel: cancel, lines: bufio.NewReaderSize(conn, 4096)}
	lease.ask = func() error {
		_, err := d.Status(ctx, id)
		return err
	}
	lease.AnswerWithin(answerTime)
	return lease, nil
}

// AnswerWithin sets how long the bridge has, from now on, to send the first status. It must
// be called before the first Next.
func (l *Lease) AnswerWithin(limit time.Duration) {
	_ = l.conn.SetReadDeadline(time.Now().Add(limit))
}

// Next waits for the next status; the first comes at once. The error is ErrNobody if the
// bridge has ended (ErrTakenDown is one), or the Lease is closed, or its context has ended.
// It is a *SilentError if the first status does not come, or the bridge no longer answers:
// one that sends nothing for a while is asked.
func (l *Lease) Next() (Status, error) {
	var line []byte
	for {
		part, err := l.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) < maxStatus:
			continue
		case isTimeout(err) && !l.answered:
			return Status{}, l.dir.Silent(l.id)
		case isTimeout(err):
			if err := l.stillThere(); err != nil {
				return Status{}, err
			}
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
	l.answered, l.unheard, l.ending = true, 0, status.Ending
	_ = l.conn.SetReadDeadline(time.Now().Add(quietTime))
	return status, nil
}

// stillThere asks a bridge that has sent nothing for a while whether it answers, on another
// connection. A bridge that is about to end does not listen any more; nor does one whose
// files were removed a moment ago, but it does again when it is asked the next time.
func (l *Lease) stillThere() error {
	var silent *SilentError
	err := l.ask()
	switch {
	case errors.As(err, &silent):
		return silent
	case err == nil:
		l.unheard = 0
	default:
		if l.unheard++; l.unheard == maxUnheard {
			return ErrNobody
		}
	}
	_ = l.conn.SetReadDeadline(time.Now().Add(quietTime))
	return nil
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Close ends the lease. It may be called from any goroutine, and ends a Next that is
// waiting.
func (l *Lease) Close() error {
	err := l.conn.Close()
	l.cancel()
	return err
}
