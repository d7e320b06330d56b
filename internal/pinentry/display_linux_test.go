package pinentry

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHasX11WithoutAConnection: a compositor starts its Xwayland at the first connection.
func TestHasX11WithoutAConnection(t *testing.T) {
	t.Parallel()
	for number := 3000; number < 4000; number++ {
		display := strconv.Itoa(number)
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@/tmp/.X11-unix/X" + display, Net: "unix"})
		if err != nil {
			continue
		}
		defer listener.Close()
		require.True(t, hasX11(map[string]string{"DISPLAY": ":" + display + ".0"}))
		require.NoError(t, listener.SetDeadline(time.Now().Add(50*time.Millisecond)))
		_, err = listener.Accept()
		require.Error(t, err, "a connection")
		return
	}
	require.Fail(t, "no free display")
}
