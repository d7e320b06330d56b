//go:build unix

package agentside

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

// movingAgent is an Agent whose sockets are, as gpgconf says, in the home that move was
// last called with. So it is when /run/user/UID comes and goes: the same GnuPG home has its
// sockets elsewhere.
func movingAgent(t *testing.T, named string) (agent *Agent, move func(*gpghome.Home)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "home")
	gpgconf := fakeGpgconf(t, "GNUPGHOME=$(cat "+file+") XDG_RUNTIME_DIR=$GNUPGHOME exec "+env.Tool(t, "gpgconf")+` "$@"`)
	agent = &Agent{Locator: &Locator{Gpgconf: gpgconf, AgentSocket: named}}
	return agent, func(home *gpghome.Home) { require.NoError(t, os.WriteFile(file, []byte(home.Dir()), 0o600)) }
}

// requireAt: each kind of connection leads to the home's agent.
func requireAt(t *testing.T, agent *Agent, home *gpghome.Home) {
	t.Helper()
	pid, err := home.AgentPID(t.Context())
	require.NoError(t, err)
	told, err := agent.ProcessID(t.Context())
	require.NoError(t, err)
	require.Equal(t, pid, told)
	_, err = environmentOf(t.Context(), agent)
	require.NoError(t, err)
	for _, connect := range []func(context.Context) (*Session, error){agent.ConnectMute, agent.Connect} {
		session, err := connect(t.Context())
		require.NoError(t, err)
		require.Equal(t, home.Dir(), filepath.Dir(session.conn.RemoteAddr().String()))
		require.NoError(t, session.Disconnect())
	}
	program, err := agent.Pinentry(t.Context())
	require.NoError(t, err)
	require.Equal(t, filepath.Join(home.Dir(), "pinentry"), program)
}

// TestAgentThatMoves: all connections go to one agent, wherever its sockets are, whichever
// of them is the first to find that they are gone.
func TestAgentThatMoves(t *testing.T) {
	t.Parallel()
	first := map[string]func(*Agent) error{
		"connect":     func(a *Agent) error { return tryConnect(t, a) },
		"alive":       func(a *Agent) error { _, err := a.Alive(t.Context()); return err },
		"identity":    func(a *Agent) error { _, err := a.ProcessID(t.Context()); return err },
		"environment": func(a *Agent) error { _, err := environmentOf(t.Context(), a); return err },
	}
	for name, look := range first {
		for _, starts := range []bool{false, true} { // something else has, before anybody asks
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				before, after := gpghome.ForTest(t), gpghome.ForTest(t)
				agent, move := movingAgent(t, "")
				move(before)
				require.NoError(t, tryConnect(t, agent))
				requireAt(t, agent, before)
				move(after)
				requireAt(t, agent, before) // it lives
				require.NoError(t, before.StopAgent(t.Context()))
				if starts {
					require.NoError(t, after.StartAgent(t.Context()))
					require.NoError(t, look(agent))
				} else if err := look(agent); err != nil {
					requireHint[*NoAgentError](t, err)
				}
				require.NoError(t, tryConnect(t, agent))
				requireAt(t, agent, after)
				_, err := before.AgentPID(t.Context())
				require.ErrorIs(t, err, gpghome.ErrNoAgent)
			})
		}
	}
}

// TestNamedAgentDoesNotMove: a path that the user named is the agent's own, if it ever was.
func TestNamedAgentDoesNotMove(t *testing.T) {
	t.Parallel()
	before, after := gpghome.ForTest(t), gpghome.ForTest(t)
	require.NoError(t, before.StartAgent(t.Context()))
	extra, err := before.ExtraSocket(t.Context())
	require.NoError(t, err)
	agent, move := movingAgent(t, extra)
	move(before)
	requireAt(t, agent, before)
	move(after)
	require.NoError(t, after.StartAgent(t.Context()))
	for range 2 {
		pid, err := agent.ProcessID(t.Context())
		require.NoError(t, err)
		want, err := before.AgentPID(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, pid)
		require.NoError(t, before.RestartAgent(t.Context()))
	}
}

func tryConnect(t *testing.T, agent *Agent) error {
	t.Helper()
	session, err := agent.Connect(t.Context())
	if err != nil {
		return err
	}
	return session.Disconnect()
}
