//go:build unix

package bridge

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakesshd"
)

// TestStats: uses by programs on the host count, and the next bridge goes on counting; the
// bridge's own verifications do not count.
func TestStats(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	var changes atomic.Int32
	stats := NewStats(func() { changes.Add(1) })
	begun := time.Now()
	for range 2 {
		over := connect(t, h.config)
		u := start(t, over, alice.local(), Options{Stats: stats, timing: quick})
		u.requireVerified(t)
		total := stats.Counts().Total // an import on the host asks the agent, too
		over.waitLooks(t, 3)
		require.Equal(t, total, stats.Counts().Total)
		require.NoError(t, h.sign(t, alice))
		eventually(t, func() bool { return stats.Counts().Sessions == 0 })
		counts := stats.Counts()
		require.Greater(t, counts.Total, total)
		require.Equal(t, "PKSIGN", counts.Last.Verb)
		require.Equal(t, alice.key.Keygrip, counts.Last.Keygrip)
		require.Zero(t, counts.Last.Code)
		require.WithinRange(t, counts.Last.At, begun, time.Now())
		require.Positive(t, counts.Last.Duration)
		u.close(t)
	}
	require.GreaterOrEqual(t, uint64(changes.Load()), 2*stats.Counts().Total)
}
