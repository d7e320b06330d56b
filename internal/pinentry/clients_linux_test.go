package pinentry

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

// TestConnectionsOf counts the connections to a real agent: our own, another program's, and
// one whose client has gone while the agent waits for a human. Only an agent older than 2.3
// keeps that one for long.
func TestConnectionsOf(t *testing.T) {
	t.Parallel()
	home, sign := askingHome(t, gpghome.PinentryNever())
	main, err := home.AgentSocket(t.Context())
	require.NoError(t, err)
	_, err = ConnectionsOf(main)
	require.ErrorIs(t, err, ErrUnknown, "without a connection of our own")

	own, err := net.Dial("unix", main+".extra")
	require.NoError(t, err)
	defer own.Close()
	require.Equal(t, Clients{Own: 1}, awaitClients(t, main, Clients{Own: 1}))
	sign()
	_, err = home.WaitPinentry(t.Context(), "GETPIN")
	require.NoError(t, err)
	require.Equal(t, Clients{Own: 1, Foreign: 1}, awaitClients(t, main, Clients{Own: 1, Foreign: 1}))

	// The same path in another directory is another agent's.
	_, err = ConnectionsOf(filepath.Join(env.ShortDir(t), "S.gpg-agent"))
	require.ErrorIs(t, err, ErrUnknown)
}

func clientsOf(main string) (Clients, error) {
	connections, err := ConnectionsOf(main)
	return connections.clients(0), err
}

// awaitClients returns the counts once they are the expected ones, or the last.
func awaitClients(t *testing.T, main string, want Clients) Clients {
	t.Helper()
	var got Clients
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if got, err = clientsOf(main); err == nil && got == want {
			break
		}
	}
	return got
}

// TestClientsGone: a connection whose other end is 0 counts as gone.
func TestClientsGone(t *testing.T) {
	t.Parallel()
	main := filepath.Join(env.ShortDir(t), "S")
	listener, err := net.Listen("unix", main)
	require.NoError(t, err)
	defer listener.Close()
	dial := func() (client, server net.Conn) {
		client, err := net.Dial("unix", main)
		require.NoError(t, err)
		server, err = listener.Accept()
		require.NoError(t, err)
		return client, server
	}
	for range 2 {
		client, server := dial()
		defer client.Close()
		defer server.Close()
	}
	gone, server := dial()
	defer server.Close()
	require.NoError(t, gone.Close())

	other := exec.Command(env.Tool(t, "socat"), "-u", "UNIX-CONNECT:"+main, "STDOUT")
	require.NoError(t, other.Start())
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	foreign, err := listener.Accept()
	require.NoError(t, err)
	defer foreign.Close()

	clients, err := clientsOf(main)
	require.NoError(t, err)
	require.Equal(t, Clients{Own: 2, Foreign: 1, Gone: 1}, clients)

	forSSH, err := net.Listen("unix", main+sshSuffix)
	require.NoError(t, err)
	defer forSSH.Close()
	client, err := net.Dial("unix", main+sshSuffix)
	require.NoError(t, err)
	defer client.Close()
	server, err = forSSH.Accept()
	require.NoError(t, err)
	defer server.Close()
	clients, err = clientsOf(main)
	require.NoError(t, err)
	require.Equal(t, Clients{Own: 2, Foreign: 2, Gone: 1}, clients, "what ssh asks for is not known")
}

// TestTwoAgents: an agent whose socket was removed goes on, and another has its path now. It
// is then not certain whose connections are listed for that path.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	main := filepath.Join(env.ShortDir(t), "S")
	serve := func(path string) (end func()) {
		server, err := net.Listen("unix", path)
		require.NoError(t, err)
		client, err := net.Dial("unix", path)
		require.NoError(t, err)
		accepted, err := server.Accept()
		require.NoError(t, err)
		end = func() { _ = errors.Join(client.Close(), accepted.Close()) }
		t.Cleanup(func() { end(); _ = server.Close() })
		return end
	}
	ended := serve(main)
	serve(main + ".extra")
	clients, err := clientsOf(main)
	require.NoError(t, err)
	require.Equal(t, Clients{Own: 2}, clients)

	require.NoError(t, os.Remove(main+".extra"))
	_, err = clientsOf(main)
	require.NoError(t, err, "it is still the only one")
	second, err := net.Listen("unix", main+".extra")
	require.NoError(t, err)
	_, err = clientsOf(main)
	require.ErrorIs(t, err, errTwoAgents, "it has no connection yet")
	require.ErrorIs(t, err, ErrUnknown)
	require.NoError(t, second.Close())
	_, err = clientsOf(main)
	require.NoError(t, err)

	require.NoError(t, os.Remove(main))
	serve(main)
	_, err = clientsOf(main)
	require.ErrorIs(t, err, errTwoAgents)
	ended()
	clients, err = clientsOf(main)
	require.NoError(t, err, "the first waits for connections, and has none")
	require.Equal(t, Clients{Own: 2}, clients)
}

func TestParseDiag(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{0, 0, 0, 0}, {255, 0, 0, 0}, {5, 0, attrPeer, 0, 1, 0, 0, 0}, {8, 0, attrFile, 0, 1, 0, 0, 0}} {
		_, err := parseAttributes(data)
		require.ErrorIs(t, err, errDiag)
	}
	_, err := parseDiag(make([]byte, 32), nil)
	require.Error(t, err)
}
