package bridge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
)

var errListing = errors.New("no gpg")

// TestKeygripsAreRemembered for a minute, and so is that they could not be had.
func TestKeygripsAreRemembered(t *testing.T) {
	for name, want := range map[string]error{"list": nil, "failure": errListing} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k keygrips
				var calls atomic.Int32
				list := func(context.Context) ([]string, error) {
					time.Sleep(time.Second)
					return []string{string('a' + rune(calls.Add(1)-1))}, want
				}
				var askers sync.WaitGroup
				for range 20 {
					askers.Go(func() {
						got, err := k.get(t.Context(), list)
						require.Equal(t, want, err)
						require.Equal(t, []string{"a"}, got)
					})
				}
				askers.Wait()
				time.Sleep(keygripsAge - time.Second)
				_, _ = k.get(t.Context(), list)
				require.EqualValues(t, 1, calls.Load())
				time.Sleep(2 * time.Second)
				got, _ := k.get(t.Context(), list)
				require.Equal(t, []string{"b"}, got)
			})
		})
	}
}

// TestKeygripsWaitNoLonger: neither than keygripsPatience for a gpg that hangs, nor than the
// caller's context.
func TestKeygripsWaitNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keygrips
		hangs := func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		start := time.Now()
		leaving, leave := context.WithTimeoutCause(t.Context(), time.Second, errListing)
		defer leave()
		_, err := k.get(leaving, hangs)
		require.Equal(t, errListing, err)
		require.Equal(t, time.Second, time.Since(start))

		// The caller's end said nothing about gpg: the next caller asks again.
		var asker sync.WaitGroup
		asker.Go(func() {
			_, err := k.get(t.Context(), hangs)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
		synctest.Wait()
		waiting, stop := context.WithTimeoutCause(t.Context(), time.Second, errListing)
		defer stop()
		_, err = k.get(waiting, hangs)
		require.Equal(t, errListing, err, "while another is at it")
		asker.Wait()
		require.Equal(t, time.Second+keygripsPatience, time.Since(start))
		_, err = k.get(t.Context(), hangs)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second+keygripsPatience, time.Since(start), "remembered")
	})
}

// TestKeygripsThatAreNotTold: where no list is given, gpg is not even asked.
func TestKeygripsThatAreNotTold(t *testing.T) {
	agent := &agentside.Agent{Locator: &agentside.Locator{}}
	keyring := agentside.Keyring{Gpg: "/nonexistent/gpg"}
	for name, l := range map[string]*Local{
		"no keys":       {Agent: agent, NoKeys: true},
		"chosen keys":   {Agent: agent, Keys: []string{"A"}},
		"another agent": {Agent: &agentside.Agent{Locator: &agentside.Locator{AgentSocket: "/S"}}},
	} {
		l.Keyring = keyring
		grips, err := l.secretKeygrips(t.Context())
		require.NoError(t, err, name)
		require.Empty(t, grips, name)
	}
	_, err := (&Local{Agent: agent, Keyring: keyring}).secretKeygrips(t.Context())
	require.Error(t, err)
}
