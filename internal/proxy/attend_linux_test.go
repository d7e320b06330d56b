package proxy

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A socket is held for as long as a process has it open, whichever.
func TestIsSocketHeld(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Log(err) // no IPv6
			continue
		}
		defer listener.Close()
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		tcp := conn.(*net.TCPConn)
		number := inode(tcp)
		require.NotZero(t, number)
		again, err := tcp.File()
		require.NoError(t, err)
		require.True(t, isSocketHeld(number))
		require.NoError(t, conn.Close())
		require.True(t, isSocketHeld(number))
		require.NoError(t, again.Close())
		require.False(t, isSocketHeld(number))
	}
	require.False(t, isSocketHeld(0))
}
