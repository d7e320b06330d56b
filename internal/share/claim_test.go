package share

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClaim(t *testing.T) {
	d := open(t)
	var said atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if d.Claim(testID, time.Hour) {
				said.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, said.Load())
	require.False(t, d.Claim(testID, time.Hour))
	require.True(t, d.Claim("ffffffffffff", time.Hour), "another target's")
	require.True(t, d.Claim(testID, 0), "long ago")
	require.False(t, d.Claim("../x", 0))
	ids, err := d.IDs()
	require.NoError(t, err)
	require.Empty(t, ids, "what was said makes no target")
}
