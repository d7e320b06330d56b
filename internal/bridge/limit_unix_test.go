//go:build unix

package bridge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/remoteside"
)

func TestSessionsWithDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 1, 4: 3, 64: 48, 256: remoteside.MaxSessions, 1024: remoteside.MaxSessions, math.MaxUint64: remoteside.MaxSessions} {
		require.Equal(t, want, sessionsWith(descriptors), descriptors)
	}
}
