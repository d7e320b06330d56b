package share

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"gpg-bridge/internal/private"
)

// The shortest and the longest pause of a process that finds the lock taken while nobody
// listens yet, or any more.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 200 * time.Millisecond
)

// Status asks the target's bridge for its status. The error is ErrNobody if there is no
// bridge, and a *SilentError if it does not answer, as for all requests below.
func (d *Dir) Status(ctx context.Context, id string) (Status, error) {
	return d.once(ctx, id, askStatus)
}

// Pin makes the bridge stay without leases.
func (d *Dir) Pin(ctx context.Context, id string) (Status, error) { return d.once(ctx, id, askPin) }

// Yield ends a bridge that is not settled, and returns when another process can take its
// place. If the Status that it returns is not Stopping, the bridge stays.
func (d *Dir) Yield(ctx context.Context, id string) (Status, error) {
	return d.end(ctx, id, askYield)
}

// Replace is Yield for a bridge that may be settled.
func (d *Dir) Replace(ctx context.Context, id string) (Status, error) {
	return d.end(ctx, id, askReplace)
}

// Stop takes a bridge down and returns when it has ended. The Leases of others return
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

// Ensure returns a lease of the target's bridge. If there is none it calls start, which
// must start a process that calls Hold, and tries again: another process may have been
// quicker. The error is a *SilentError if a process has the lock but does not listen.
func (d *Dir) Ensure(ctx context.Context, id string, start func(context.Context) error) (*Lease, error) {
	var unheard time.Time // since when the lock is held and nobody listens
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		lease, err := d.Lease(ctx, id)
		if !errors.Is(err, ErrNobody) {
			return lease, err
		}
		held, err := d.startIfFree(ctx, id, start)
		if err != nil {
			return nil, err
		}
		if lease, err := d.Lease(ctx, id); !errors.Is(err, ErrNobody) {
			return lease, err
		}
		switch {
		case !held:
			unheard = time.Time{}
		case unheard.IsZero():
			unheard = time.Now()
		case time.Since(unheard) > MaxVacancy:
			return nil, d.Silent(id)
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// startIfFree calls start, unless the lock is held: that process is about to listen, or
// about to end.
func (d *Dir) startIfFree(ctx context.Context, id string, start func(context.Context) error) (held bool, err error) {
	lock, err := d.lock(id)
	switch {
	case errors.Is(err, ErrHeld):
		return true, nil
	case err != nil:
		return false, err
	}
	if err := lock.Close(); err != nil {
		return false, err
	}
	return false, start(ctx)
}

// checkDialed returns a connection that dial made, if it is to a process of the user's. err
// is why there is none.
func checkDialed(ctx context.Context, conn net.Conn, err error) (net.Conn, error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, ErrNobody
	}
	if err := private.CheckPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (d *Dir) once(ctx context.Context, id string, ask verb) (Status, error) {
	lease, err := d.open(ctx, id, ask)
	if err != nil {
		return Status{}, err
	}
	defer lease.Close()
	return lease.Next()
}

// A VersionError says that the bridge's process is another version of gpg-bridge.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the bridge speaks version %d of the control protocol, not %d", e.Version, Version)
}

// Hint says what to do.
func (e *VersionError) Hint() string {
	return "end the bridges of the other version with it: gpg-bridge down --all"
}
