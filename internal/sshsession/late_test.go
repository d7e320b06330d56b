package sshsession

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session waits equally long on all fast links, longer if round trips take long, and never
// without limit.
func TestHostDeadline(t *testing.T) {
	began := time.Now()
	wait := func(trip, first time.Duration) time.Duration {
		return hostDeadline(began, func() (time.Duration, time.Time) { return trip, began.Add(first) }).Sub(began)
	}
	const ms, s = time.Millisecond, time.Second
	require.Equal(t, bridgePatience+10*ms, wait(10*ms, 10*ms))
	require.Equal(t, bridgePatience+400*ms, wait(400*ms, 400*ms), "a round trip that the patience is enough for")
	require.Equal(t, bridgePatience+2*s, wait(20*ms, 2*s), "the log-in took long there")
	require.Equal(t, 3*s, wait(600*ms, 600*ms))
	require.Equal(t, 4500*ms, wait(900*ms, 900*ms))
	require.Equal(t, mostPatience, wait(2*s, 2*s))
	require.Equal(t, mostPatience, wait(10*ms, 5*s))
	unanswered := hostDeadline(began, func() (time.Duration, time.Time) { return 0, time.Time{} })
	require.Equal(t, mostPatience, unanswered.Sub(began))
}
