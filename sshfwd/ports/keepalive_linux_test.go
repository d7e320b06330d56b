package ports

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// As with ssh, the local ends of forwards have no keepalives.
func TestForwardsHaveNoKeepalives(t *testing.T) {
	t.Parallel()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer target.Close()
	f := &forwards{ctx: t.Context()}
	host, port, err := net.SplitHostPort(target.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	dialed, err := f.dial(config.Endpoint{Host: host, Port: number})
	require.NoError(t, err)
	defer dialed.Close()
	require.Equal(t, env.DefaultKeepalive(t), env.KeepaliveOf(t, dialed))

	all, err := listeners(context.Background(), config.Forwards{}, config.Endpoint{Host: "127.0.0.1"})
	require.NoError(t, err)
	defer all[0].Close()
	near, err := net.Dial("tcp", all[0].Addr().String())
	require.NoError(t, err)
	defer near.Close()
	accepted, err := all[0].Accept()
	require.NoError(t, err)
	defer accepted.Close()
	require.Equal(t, env.DefaultKeepalive(t), env.KeepaliveOf(t, accepted))
}
