package env

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Keepalive has the kernel's settings for a connection's keepalives: whether there are any,
// their times, and how long a byte may stay unacknowledged.
type Keepalive struct{ On, idle, interval, count, userTimeout int }

func keepaliveOptionsOf(t *testing.T, fd int) (o Keepalive) {
	t.Helper()
	for _, option := range []struct {
		level, name int
		to          *int
	}{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, &o.On},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, &o.idle},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, &o.interval},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, &o.count},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, &o.userTimeout},
	} {
		value, err := unix.GetsockoptInt(fd, option.level, option.name)
		require.NoError(t, err)
		*option.to = value
	}
	return o
}

// DefaultKeepalive returns the settings of a new socket.
func DefaultKeepalive(t *testing.T) Keepalive {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	return keepaliveOptionsOf(t, fd)
}

// KeepaliveOf returns the settings of a TCP connection.
func KeepaliveOf(t *testing.T, conn net.Conn) (o Keepalive) {
	t.Helper()
	require.IsType(t, &net.TCPConn{}, conn)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { o = keepaliveOptionsOf(t, int(fd)) }))
	return o
}
