package share

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// last returns what Next returns at the end of a lease.
func last(lease *Lease) (status Status, err error) {
	for err == nil {
		var next Status
		if next, err = lease.Next(); err == nil {
			status = next
		}
	}
	return status, err
}

// TestEveryLeaseHearsTheEnding: even if the bridge has nothing to remove, and so is gone at
// once.
func TestEveryLeaseHearsTheEnding(t *testing.T) {
	d := open(t)
	for _, test := range []struct {
		end  func() error
		want Ending
		err  error
	}{
		{func() error { _, err := d.Stop(t.Context(), testID); return err }, TakenDown, ErrTakenDown},
		{func() error { _, err := d.Replace(t.Context(), testID); return err }, HandedOver, ErrNobody},
		{nil, "", ErrNobody}, // by itself
	} {
		h := hold(t, d, in(Up))
		var leases []*Lease
		for range 20 {
			lease, err := d.Lease(t.Context(), testID)
			require.NoError(t, err)
			t.Cleanup(func() { _ = lease.Close() })
			_, err = lease.Next()
			require.NoError(t, err)
			leases = append(leases, lease)
		}
		var closing sync.WaitGroup
		if test.end == nil {
			require.NoError(t, h.Close())
		} else {
			closing.Go(func() { <-h.Stopped(); _ = h.Close() })
			require.NoError(t, test.end())
		}
		for _, lease := range leases {
			status, err := last(lease)
			require.ErrorIs(t, err, ErrNobody)
			require.Equal(t, test.err == ErrTakenDown, err == ErrTakenDown)
			require.Equal(t, test.want, status.Ending)
		}
		closing.Wait()
		require.Equal(t, test.want, h.Ending())
	}
}

// TestDownCountsMost: a request to end the bridge overrides earlier ones.
func TestDownCountsMost(t *testing.T) {
	h := hold(t, open(t), in(Waiting))
	h.stop(HandedOver)
	h.stop(TakenDown)
	h.stop(HandedOver)
	require.Equal(t, TakenDown, h.Ending())
}

// TestClosedHolderWaitsForNobody: a connection without a request yet, and one whose other
// end reads nothing, do not delay Close.
func TestClosedHolderWaitsForNobody(t *testing.T) {
	d := open(t)
	h := hold(t, d, in(Up))
	silent, err := d.dial(t.Context(), testID)
	require.NoError(t, err)
	defer silent.Close()
	deaf, err := d.Watch(t.Context(), testID)
	require.NoError(t, err)
	defer deaf.Close()
	for range 5000 { // more than a socket's buffer
		h.Changed()
	}
	start := time.Now()
	require.NoError(t, h.Close())
	require.Less(t, time.Since(start), answerTimeout)
}

func TestLeasedTells(t *testing.T) {
	d := open(t)
	h := hold(t, d, in(Waiting))
	for _, ask := range []func() (*Lease, error){
		func() (*Lease, error) { return d.Watch(t.Context(), testID) },
		func() (*Lease, error) { return d.Lease(t.Context(), testID) },
	} {
		require.Empty(t, h.Leased())
		lease, err := ask()
		require.NoError(t, err)
		_, err = lease.Next()
		require.NoError(t, err)
		require.NoError(t, lease.Close())
	}
	require.Len(t, h.Leased(), 1)
}

// TestManyChangesAreToldAsOne: they are sent together, and the last one is sent.
func TestManyChangesAreToldAsOne(t *testing.T) {
	d := open(t)
	var total atomic.Uint64
	h, err := d.Hold(testID, func() Status { return Status{SessionsTotal: total.Load()} })
	require.NoError(t, err)
	defer h.Close()
	watch, err := d.Watch(t.Context(), testID)
	require.NoError(t, err)
	defer watch.Close()
	const changes = 1000
	for range changes {
		total.Add(1)
		h.ChangedSoon()
	}
	told := 0
	for status := (Status{}); status.SessionsTotal < changes; told++ {
		status, err = watch.Next()
		require.NoError(t, err)
	}
	require.LessOrEqual(t, told, 20)
	h.ChangedSoon() // and Close need not wait for it
}

func TestHeld(t *testing.T) {
	d := open(t)
	held, err := d.Held(testID)
	require.NoError(t, err)
	require.False(t, held)
	h := hold(t, d, in(Up))
	held, err = d.Held(testID)
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, h.Close())
	held, err = d.Held(testID)
	require.NoError(t, err)
	require.False(t, held)
	_, err = d.Held("../x")
	require.Error(t, err)
}
