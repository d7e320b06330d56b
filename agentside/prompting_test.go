//go:build unix

package agentside

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/assuan"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/release"
)

// TestPinentry: the program is the one that the agent's configuration names, or GnuPG's own.
func TestPinentry(t *testing.T) {
	t.Parallel()
	home := gpghome.ForTest(t)
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	program := func() string {
		path, err := agent.Pinentry(t.Context())
		require.NoError(t, err)
		return path
	}
	require.Equal(t, filepath.Join(home.Dir(), "pinentry"), program())

	link, target := filepath.Join(home.Dir(), "link"), filepath.Join(home.Dir(), "pinentry-text")
	require.NoError(t, os.WriteFile(target, nil, 0o700))
	require.NoError(t, os.Symlink(target, link))
	require.NoError(t, home.AppendConfig("gpg-agent.conf", "# pinentry-program /no", fmt.Sprintf("  pinentry-program  %q ", link)))
	require.Equal(t, target, program(), "the last one counts")

	require.NoError(t, os.Remove(filepath.Join(home.Dir(), "gpg-agent.conf")))
	require.Contains(t, filepath.Base(program()), "pinentry")
	require.NotContains(t, program(), home.Dir())
}

// TestStartupEnvironment: a real agent is asked, and never started for it.
func TestStartupEnvironment(t *testing.T) {
	t.Parallel()
	home := gpghome.ForTest(t)
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	_, err := environmentOf(t.Context(), agent)
	var none *NoAgentError
	require.ErrorAs(t, err, &none)
	_, err = home.AgentPID(t.Context())
	require.ErrorIs(t, err, gpghome.ErrNoAgent, "it was started")

	require.NoError(t, home.StartAgent(t.Context()))
	_, _, err = home.Run(t.Context(), nil, "env", "GPG_TTY=/dev/a b%", "DISPLAY=:7", "gpg-connect-agent", "updatestartuptty", "/bye")
	require.NoError(t, err)
	env, err := environmentOf(t.Context(), agent)
	require.NoError(t, err)
	require.Equal(t, "/dev/a b%", env["GPG_TTY"])
	require.Equal(t, ":7", env["DISPLAY"])
}

func environmentOf(ctx context.Context, agent *Agent) (env map[string]string, err error) {
	err = agent.Identity(ctx, func(id Identity) (err error) {
		env, err = id.StartupEnvironment()
		return err
	})
	return env, err
}

// TestConnectMute: what needs a prompt fails without one, what does not works, and the
// connection is restricted.
func TestConnectMute(t *testing.T) {
	t.Run("here", func(t *testing.T) { testConnectMute(t, "") })
	for _, suite := range release.Suites() {
		t.Run(suite, func(t *testing.T) { testConnectMute(t, release.GnuPG(t, suite)) })
	}
}

func testConnectMute(t *testing.T, programs string) {
	t.Parallel()
	home := gpghome.ForTestWith(t, programs)
	key, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "mute@example.org", Passphrase: "secret"})
	require.NoError(t, err)
	require.NoError(t, home.SetPinentry(gpghome.PinentryAnswers("secret")))
	agent := &Agent{Locator: &Locator{Env: home.Env()}}
	sign := func(connect func() (*Session, error)) []byte {
		session, err := connect()
		require.NoError(t, err)
		defer session.Close()
		var last []byte
		for _, command := range []string{"GETINFO restricted", "SIGKEY " + key.Keygrip, "SETHASH --hash=sha256 " + strings.Repeat("ab", 32), "PKSIGN"} {
			require.Zero(t, assuan.ErrorCode(last), "%s", last)
			last, err = session.SendCommands([]byte(command + "\n"))
			require.NoError(t, err)
		}
		return last
	}
	mute := func() (*Session, error) { return agent.ConnectMute(t.Context()) }
	require.Equal(t, "ERR 67108949 No pinentry <GPG Agent>\n", string(sign(mute)))
	calls, err := home.PinentryCalls()
	require.NoError(t, err)
	require.Empty(t, calls, "a prompt")
	require.Contains(t, string(sign(func() (*Session, error) { return agent.Connect(t.Context()) })), "sig-val")
	require.Contains(t, string(sign(mute)), "sig-val", "the agent knows the passphrase now")
}
