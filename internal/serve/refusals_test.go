package serve

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/notice"
)

// One at a time, and not again too soon.
func TestRefusalsAreToldSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r refusals
		told := 0
		hold := make(chan struct{})
		require.True(t, r.tell(func() { told++; <-hold }))
		time.Sleep(notice.Every)
		require.False(t, r.tell(func() { told++ }), "the first one is not over")
		close(hold)
		r.telling.Wait()
		require.Equal(t, 1, told)

		require.True(t, r.tell(func() { told++ }), "the one before was not told")
		time.Sleep(notice.Every - 1)
		for range 1000 {
			require.False(t, r.tell(func() { told++ }))
		}
		r.telling.Wait()
		require.Equal(t, 2, told)
		time.Sleep(1)
		require.True(t, r.tell(func() { told++ }))
		r.telling.Wait()
		require.Equal(t, 3, told)
	})
}
