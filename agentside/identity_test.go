//go:build unix

package agentside

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

// TestIdentity: a real agent is asked who it is, and never started for it.
func TestIdentity(t *testing.T) {
	t.Parallel()
	home := gpghome.ForTest(t)
	main, err := home.AgentSocket(t.Context())
	require.NoError(t, err)
	extra, err := home.ExtraSocket(t.Context())
	require.NoError(t, err)

	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	_, err = agent.ProcessID(t.Context())
	var none *NoAgentError
	require.ErrorAs(t, err, &none)
	_, err = home.AgentPID(t.Context())
	require.ErrorIs(t, err, gpghome.ErrNoAgent, "it was started")

	require.NoError(t, home.StartAgent(t.Context()))
	want, err := home.AgentPID(t.Context())
	require.NoError(t, err)
	for _, named := range []string{"", main, extra} {
		agent := &Agent{Locator: &Locator{Env: home.Env(), AgentSocket: named}}
		require.NoError(t, agent.Identity(t.Context(), func(id Identity) error {
			require.Equal(t, want, id.PID)
			require.Equal(t, main, id.Main)
			connections, sure, err := id.Connections()
			require.Positive(t, connections)
			require.True(t, sure)
			return err
		}))
	}
	other := &Agent{Locator: &Locator{Env: home.Env(), AgentSocket: main + ".browser"}}
	_, err = other.ProcessID(t.Context())
	require.ErrorIs(t, err, ErrNotOwnAgent)

	stop := errors.New("stop")
	require.ErrorIs(t, agent.Identity(t.Context(), func(Identity) error { return stop }), stop)
}

// lookedAtEndpoint looks at its dial, and fails.
type lookedAtEndpoint struct {
	fakeEndpoint
	look func()
}

func (e *lookedAtEndpoint) Dial(context.Context) (net.Conn, error) {
	e.look()
	return nil, io.ErrUnexpectedEOF
}

// TestConnectionsNotGreeted: a count is not sure while a conversation is begun.
func TestConnectionsNotGreeted(t *testing.T) {
	t.Parallel()
	home := gpghome.ForTest(t)
	require.NoError(t, home.StartAgent(t.Context()))
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	require.NoError(t, agent.Identity(t.Context(), func(id Identity) error {
		isSure := func() bool {
			_, sure, err := id.Connections()
			require.NoError(t, err)
			return sure
		}
		require.True(t, isSure())
		begun := &lookedAtEndpoint{look: func() { require.False(t, isSure()) }}
		_, err := agent.connect(t.Context(), begun, noCheck)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.True(t, isSure(), "it has failed")
		return agent.Identity(t.Context(), func(Identity) error {
			require.True(t, isSure(), "it was greeted")
			return nil
		})
	}))
}

func TestParsePID(t *testing.T) {
	t.Parallel()
	pid, err := parsePID([]byte("D 4711\nOK\n"))
	require.NoError(t, err)
	require.Equal(t, 4711, pid)
	for _, response := range []string{"", "OK\n", "D 4711\n", "D 1\nOK\n", "D -5\nOK\n", "D x\nOK\n", "ERR 67109115 Forbidden <GPG Agent>\n", "D 4711\nERR 1\n"} {
		_, err := parsePID([]byte(response))
		require.Error(t, err, response)
	}
}
