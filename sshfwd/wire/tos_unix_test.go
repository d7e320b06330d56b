//go:build unix

package wire

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSetTOS(t *testing.T) {
	for network, option := range map[string][2]int{
		"tcp4": {unix.IPPROTO_IP, unix.IP_TOS}, "tcp6": {unix.IPPROTO_IPV6, unix.IPV6_TCLASS},
	} {
		l, err := net.Listen(network, "localhost:0")
		if err != nil && network == "tcp6" {
			t.Logf("no IPv6 here: %v", err)
			continue
		}
		require.NoError(t, err)
		defer l.Close()
		conn, err := net.Dial(network, l.Addr().String())
		require.NoError(t, err)
		w := New(conn)
		defer w.Close()
		require.NoError(t, w.SetTOS(0x48))
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			tos, err := unix.GetsockoptInt(int(fd), option[0], option[1])
			require.NoError(t, err)
			require.Equal(t, 0x48, tos, network)
		}))
	}
}

// A jump host's channel has no TOS field.
func TestSetTOSOfAProxy(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	w := New(near)
	defer w.Close()
	require.NoError(t, w.SetTOS(0x48))
	require.NoError(t, (*Conn)(nil).SetTOS(0x48))
}
