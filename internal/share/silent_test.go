package share

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"
)

// A bridge that has answered once and then hangs is noticed by those who use it; one whose
// status does not change is not taken for such a one.
func TestLeaseOfABridgeThatHangsLater(t *testing.T) {
	t.Parallel()
	d := open(t)
	h := hold(t, d, in(Up))
	lease, err := d.Lease(t.Context(), testID)
	require.NoError(t, err)
	defer lease.Close()
	_, err = lease.Next()
	require.NoError(t, err)
	require.NoError(t, lease.stillThere(), "it answers")
	next := make(chan error, 1)
	go func() {
		_, err := lease.Next()
		next <- err
	}()

	h.mu.Lock() // as if it were stopped: connections are accepted, and nobody answers
	defer h.mu.Unlock()
	var silent *SilentError
	select {
	case err := <-next:
		require.ErrorAs(t, err, &silent)
		require.Equal(t, os.Getpid(), silent.PID)
	case <-time.After(30 * time.Second):
		t.Fatal("nobody notices")
	}
}

// The named process is the one that has the lock, or none is named.
func TestNoDeadProcessIsNamed(t *testing.T) {
	t.Parallel()
	d := open(t)
	h := hold(t, d, in(Up))
	require.Equal(t, os.Getpid(), d.Silent(testID).PID)
	require.NoError(t, os.Remove(filepath.Join(d.Path(), testID+socketSuffix)))
	require.Eventually(t, func() bool {
		_, err := d.Status(t.Context(), testID)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond, "it does not listen again")
	require.Equal(t, os.Getpid(), d.Silent(testID).PID)
	require.NoError(t, h.Close())

	next := flock.New(d.LockPath(testID)) // stopped before it could say who it is
	got, err := next.TryLock()
	require.NoError(t, err)
	require.True(t, got)
	defer next.Close()
	require.Zero(t, d.Silent(testID).PID)
	require.NotContains(t, d.Silent(testID).Hint(), "kill")
}

// A request of another version is answered with our version, and has no other effect.
func TestAnotherVersionIsAnswered(t *testing.T) {
	t.Parallel()
	d := open(t)
	h := hold(t, d, in(Up))
	conn, err := d.dial(t.Context(), testID)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, send(conn, request{Version + 1, askStop}))
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	require.NoError(t, err)
	var status Status
	require.NoError(t, json.Unmarshal(line, &status))
	require.Equal(t, Version, status.Version)
	require.False(t, isClosed(h.Stopped()))
}

// One goroutine writes the log while another finds the directory gone.
func TestDirectoryVanishesWhileTheLogIsWritten(t *testing.T) {
	t.Parallel()
	d := open(t)
	log, err := d.Log(testID)
	require.NoError(t, err)
	defer log.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 50 {
			_ = d.EmptyLog(testID)
			_ = d.Claim(testID, time.Hour)
		}
	}()
	for range 50 {
		_ = os.RemoveAll(d.Path()) // what is made meanwhile may keep it
		_, err := d.current()
		require.NoError(t, err)
	}
	<-done
}
