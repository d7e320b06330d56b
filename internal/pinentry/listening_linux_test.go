package pinentry

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// TestIsListening: nobody listens at a socket that was left behind, at one that is connected,
// or because there is another whose path ends the same; and the check connects to nobody.
func TestIsListening(t *testing.T) {
	t.Parallel()
	dir := env.ShortDir(t)
	for _, name := range []string{"S", "a b"} {
		path := filepath.Join(dir, name)
		require.False(t, IsListening(path))
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		require.NoError(t, err)
		listener.SetUnlinkOnClose(false)
		require.True(t, IsListening(path))
		require.False(t, IsListening("b"))
		client, err := net.Dial("unix", path)
		require.NoError(t, err)
		server, err := listener.Accept()
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		require.FileExists(t, path)
		require.False(t, IsListening(path))
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		require.NoError(t, os.Remove(path))
	}
}
