package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/memory"
)

// A sign that a host may also give when it is in trouble just once is believed for an hour,
// then for a day, and for good only if three tries never showed a shell. Early tries change
// nothing, however many, and never lead further than to the next step.
func TestNoShellIsBelievedForLongerAndLonger(t *testing.T) {
	t.Parallel()
	const never = time.Duration(-1)
	for name, c := range map[string]struct {
		seen  sign
		lasts []time.Duration
	}{
		"silent": {silentSign, []time.Duration{time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour}},
		"end":    {endSign, []time.Duration{time.Hour, 24 * time.Hour, never, never}},
		"echo":   {echoSign, []time.Duration{never, never}},
	} {
		t.Run(name, func(t *testing.T) {
			var known memory.NoShell
			now := time.Unix(1700000000, 0)
			for _, lasts := range c.lasts {
				for range 3 { // the last two by --takeover
					known = remembered(known, c.seen, now)
					require.Equal(t, now, known.Found)
					if lasts == never {
						require.Zero(t, known.Until)
					} else {
						require.Equal(t, lasts, known.Until.Sub(now))
					}
					require.True(t, known.Known(now))
					now = now.Add(time.Minute)
				}
				now = now.Add(25 * time.Hour)
			}
		})
	}
	now := time.Unix(1700000000, 0)
	silent := remembered(memory.NoShell{Found: now}, silentSign, now)
	require.Equal(t, 24*time.Hour, silent.Until.Sub(now), "one by --takeover that proves less")
}
