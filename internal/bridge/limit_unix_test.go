//go:build unix

package bridge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSessionsWithDescriptors(t *testing.T) {
	for descriptors, want := range map[uint64]int{0: 1, 4: 3, 64: 48, 256: perBridge, 1024: perBridge, math.MaxUint64: perBridge} {
		require.Equal(t, want, sessionsWith(descriptors), descriptors)
	}
}
