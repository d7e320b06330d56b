package sshfwd

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// A connection survives as long a silence as ssh's does: its keepalives, if TCPKeepAlive is
// on, have the system's times.
func TestTCPKeepAliveIsTheSystems(t *testing.T) {
	t.Parallel()
	srv := sshd.Start(t, sshd.Config{})
	for value, on := range map[string]int{"yes": 1, "no": 0} {
		want := env.DefaultKeepalive(t)
		want.On = on
		client, err := Dial(dialContext(t), resolved(t, srv, "TCPKeepAlive="+value), DialOptions{Log: env.QuietLog()})
		require.NoError(t, err)
		require.Equal(t, want, env.KeepaliveOf(t, client.wire.Conn), value)
		require.NoError(t, client.Close())
	}
}
