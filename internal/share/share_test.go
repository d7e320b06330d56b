package share

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gpg-bridge/internal/testkit/env"
)

const testID = "00112233445566778899aabbccddeeff"

// holdIn starts another process that holds testID in a directory.
const holdIn = "SHARE_TEST_HOLD_IN"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdIn); path != "" {
		os.Exit(holdUntilStopped(path))
	}
	goleak.VerifyTestMain(m)
}

func holdUntilStopped(path string) int {
	d, err := OpenAt(path)
	if err != nil {
		return 1
	}
	h, err := d.Hold(testID, func() Status { return Status{State: Up} })
	if err != nil {
		return 2
	}
	fmt.Println("holding")
	<-h.Stopped()
	_ = h.Close()
	return 0
}

func open(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenAt(env.ShortDir(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func hold(t *testing.T, d *Dir, state *atomic.Value) *Holder {
	t.Helper()
	h, err := d.Hold(testID, func() Status { return Status{Target: "dev", State: state.Load().(State)} })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func in(state State) *atomic.Value {
	v := new(atomic.Value)
	v.Store(state)
	return v
}

func TestOneHolder(t *testing.T) {
	d := open(t)
	h := hold(t, d, in(Up))
	_, err := d.Hold(testID, nil)
	require.ErrorIs(t, err, ErrHeld)
	status, err := d.Status(t.Context(), testID)
	require.NoError(t, err)
	require.Equal(t, Status{Version: 1, ID: testID, Target: "dev", State: Up, PID: os.Getpid()}, status)
	require.NoError(t, h.Close())
	_, err = d.Status(t.Context(), testID)
	require.ErrorIs(t, err, ErrNobody)
	hold(t, d, in(Up))
	ids, err := d.IDs()
	require.NoError(t, err)
	require.Equal(t, []string{testID}, ids)
}

func TestIDsAreNoPaths(t *testing.T) {
	d := open(t)
	for _, id := range []string{"", "../../x", "0011", "00112233/0011", "ABCDEF0123456789"} {
		_, err := d.Hold(id, nil)
		require.Error(t, err, id)
		_, err = d.Status(t.Context(), id)
		require.Error(t, err, id)
		require.NotErrorIs(t, err, ErrNobody, id)
	}
}

func TestLeasesKeepABridge(t *testing.T) {
	d := open(t)
	h := hold(t, d, in(Up))
	abandoned := make(chan error, 1)
	lease, err := d.Lease(t.Context(), testID)
	require.NoError(t, err)
	status, err := lease.Next()
	require.NoError(t, err)
	require.Equal(t, 1, status.Leases)
	go func() { abandoned <- h.Abandoned(t.Context(), 30*time.Millisecond) }()
	for range 3 { // others that come and go
		other, err := d.Lease(t.Context(), testID)
		require.NoError(t, err)
		_, err = other.Next()
		require.NoError(t, err)
		require.NoError(t, other.Close())
	}
	require.Never(t, func() bool { return len(abandoned) > 0 }, 150*time.Millisecond, 10*time.Millisecond)
	require.NoError(t, lease.Close())
	require.NoError(t, <-abandoned)
}

func TestPinnedBridgeStays(t *testing.T) {
	d := open(t)
	h := hold(t, d, in(Up))
	status, err := d.Pin(t.Context(), testID)
	require.NoError(t, err)
	require.True(t, status.Pinned)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.Abandoned(ctx, time.Millisecond), context.DeadlineExceeded)
}

func TestWatchSeesChanges(t *testing.T) {
	d := open(t)
	state := in(Connecting)
	h := hold(t, d, state)
	watch, err := d.Watch(t.Context(), testID)
	require.NoError(t, err)
	status, err := watch.Next()
	require.NoError(t, err)
	require.Equal(t, Connecting, status.State)
	require.Zero(t, status.Leases)
	state.Store(Up)
	h.Changed()
	status, err = watch.Next()
	require.NoError(t, err)
	require.Equal(t, Up, status.State)
	require.NoError(t, h.Close())
	_, err = watch.Next()
	require.ErrorIs(t, err, ErrNobody)
}

// TestYield: only a bridge that is not settled makes way.
func TestYield(t *testing.T) {
	d := open(t)
	state := in(Up)
	h := hold(t, d, state)
	status, err := d.Yield(t.Context(), testID)
	require.NoError(t, err)
	require.Equal(t, Up, status.State)
	state.Store(Waiting)
	go func() { <-h.Stopped(); _ = h.Close() }()
	status, err = d.Yield(t.Context(), testID)
	require.NoError(t, err)
	require.Equal(t, Stopping, status.State)
	hold(t, d, state)
}

// TestKilledHolder: the lock is free when the process is gone, however it ended.
func TestKilledHolder(t *testing.T) {
	d := open(t)
	for range 2 {
		cmd := startHolder(t, d)
		watch, err := d.Watch(t.Context(), testID)
		require.NoError(t, err)
		_, err = watch.Next()
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		_, err = watch.Next()
		require.ErrorIs(t, err, ErrNobody)
		_ = cmd.Wait()
		_, err = d.Status(t.Context(), testID)
		require.ErrorIs(t, err, ErrNobody)
	}
	hold(t, d, in(Up))
}

func startHolder(t *testing.T, d *Dir) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holdIn+"="+d.files.Path())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd
}

// TestEnsureMakesOne: 50 concurrent calls, twenty times, each time with a start and a stop.
func TestEnsureMakesOne(t *testing.T) {
	d := open(t)
	for range 20 {
		var holding, most, started atomic.Int32
		var bridges sync.WaitGroup
		start := func(context.Context) error {
			bridges.Go(func() {
				h, err := d.Hold(testID, func() Status { return Status{State: Up} })
				if errors.Is(err, ErrHeld) {
					return
				}
				started.Add(1)
				most.Store(max(most.Load(), holding.Add(1)))
				<-h.Stopped()
				holding.Add(-1)
				_ = h.Close()
			})
			return nil
		}
		var users sync.WaitGroup
		for i := range 50 {
			users.Go(func() {
				lease, err := d.Ensure(t.Context(), testID, start)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = lease.Next()
				_ = lease.Close()
				if i%10 == 0 {
					_, _ = d.Stop(t.Context(), testID)
				}
			})
		}
		users.Wait()
		_, err := d.Stop(t.Context(), testID)
		if err != nil {
			require.ErrorIs(t, err, ErrNobody)
		}
		bridges.Wait()
		require.EqualValues(t, 1, most.Load(), "%d were started", started.Load())
		require.Zero(t, holding.Load())
	}
}

// TestNonsenseIsHungUpOn: the connection is closed, and the others are not disturbed.
func TestNonsenseIsHungUpOn(t *testing.T) {
	d := open(t)
	hold(t, d, in(Up))
	for _, text := range []string{"\n", "{}\n", `{"version":2,"request":7}` + "\n", `{"version":1,"request":"x"}` + "\n",
		string(make([]byte, 8192))} {
		conn, err := d.dial(t.Context(), testID)
		require.NoError(t, err)
		_, _ = conn.Write([]byte(text))
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err = conn.Read(make([]byte, 1))
		require.Error(t, err)
		var timeout net.Error
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), text)
		require.NoError(t, conn.Close())
	}
	status, err := d.Status(t.Context(), testID)
	require.NoError(t, err)
	require.Equal(t, Up, status.State)
}
