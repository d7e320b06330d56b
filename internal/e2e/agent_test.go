package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/agentsocket"
	"gpg-bridge/internal/testkit/env"
)

// gpg on the host must hear that there is no agent; if it heard nothing, it
// would start one of its own.
func TestAgentThatCannotBeReached(t *testing.T) {
	s := stage{}.set(t)
	nowhere := filepath.Join(env.ShortDir(t), "S.none")

	r := s.run(t, "--agent-socket", nowhere, "host", "echo on the host; "+s.signing()+" 2>&1")
	require.Equal(t, 2, r.code, "gpg's")
	require.Regexp(t, `^on the host\n(?s:.*)signing failed: No agent running`, r.stdout)
	r.requireWarning(t, "the local agent cannot be used: no gpg-agent at", "gpgconf --launch gpg-agent")
	require.Empty(t, s.agents())
	s.requireNoSocket(t)

	r = s.run(t, "--agent-socket", nowhere, "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "the local agent cannot be used: no gpg-agent at", "gpgconf --launch gpg-agent")
	s.requireNoSocket(t)

	r = s.run(t, "--agent-socket", nowhere, "-o", "ExitOnForwardFailure=yes", "host", "echo on")
	require.Equal(t, 255, r.code)
	require.Empty(t, r.stdout)
}

// The warning comes before anything of the host's, so that it is read.
func TestWarningComesFirst(t *testing.T) {
	s := stage{}.set(t)
	p := s.start(t, "--agent-socket", "/nowhere/S.none", "host", "echo on >&2")
	r := p.wait(t)
	require.Zero(t, r.code)
	require.Regexp(t, `^gpg-bridge: warning: [^\n]*\ngpg-bridge: [^\n]*\non\n$`, r.stderr)
}

// The agent ends while the bridge serves: gpg on the host is told, the user is
// told once, and a new agent is found.
func TestAgentGoesAndComesBack(t *testing.T) {
	s := stage{}.set(t)
	extra := s.extraSocket(t)
	p := s.bridge(t, "--agent-socket", extra)
	s.sign(t)
	require.NoError(t, s.laptop.StopAgent(t.Context()))
	for range 2 {
		require.Contains(t, s.signFails(t), "signing failed: No agent running")
	}
	require.NoError(t, s.laptop.StartAgent(t.Context()))
	s.sign(t)
	require.Empty(t, s.agents())
	p.signal(t, syscall.SIGTERM)
	messages := p.wait(t).messages(t)
	require.Len(t, messages, 3)
	require.Contains(t, messages[1], "warning: no agent for a gpg on the host: no gpg-agent at")
	s.requireNoSocket(t)
}

// Without --agent-socket an agent that is not there is started.
func TestAgentIsStarted(t *testing.T) {
	s := stage{}.set(t)
	p := s.bridge(t)
	require.NoError(t, s.laptop.StopAgent(t.Context()))
	s.sign(t)
	s.end(t, p)
	require.NoError(t, s.laptop.StopAgent(t.Context()))
	s.runSigning(t)
}

// fronts are the two kinds of a file that stands for a socket on Windows.
var fronts = map[string]func(testing.TB, string, [16]byte) *agentsocket.Front{
	"native": agentsocket.StartNative,
	"cygwin": agentsocket.StartCygwin,
}

func TestSocketFiles(t *testing.T) {
	for name, start := range fronts {
		t.Run(name, func(t *testing.T) {
			s := stage{}.set(t)
			front := start(t, s.extraSocket(t), [16]byte([]byte("\n\r\x00\xffnonce of any\n")))
			r := s.runSigning(t, "--agent-socket", front.SocketFile)
			require.NotContains(t, r.stderr, "gpg-bridge:")

			p := s.bridge(t, "--agent-socket", front.SocketFile)
			s.sign(t)
			require.NoError(t, front.Restart())
			s.sign(t)
			s.end(t, p)
		})
	}
}

func TestRedirectedSocket(t *testing.T) {
	s := stage{}.set(t)
	redirect := filepath.Join(env.ShortDir(t), "S.gpg-agent.extra")
	require.NoError(t, os.WriteFile(redirect, []byte("%Assuan%\nsocket="+s.extraSocket(t)+"\n"), 0o600))
	r := s.runSigning(t, "--agent-socket", redirect)
	require.NotContains(t, r.stderr, "gpg-bridge:")
}

func TestSocketFilesThatCannotBeUsed(t *testing.T) {
	s := stage{}.set(t)
	front := agentsocket.StartNative(t, s.extraSocket(t), [16]byte([]byte("0123456789abcdef")))
	good, err := os.ReadFile(front.SocketFile)
	require.NoError(t, err)
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		uid           int
		text, advice  string
	}{
		{"malformed", "hello\x1b[31m\nworld\n", 0o600, 0, "agent socket", "remove the file and restart the agent"},
		{"truncated", string(good[:len(good)-1]), 0o600, 0, "agent socket", "remove the file and restart the agent"},
		{"empty", "", 0o600, 0, "agent socket", "remove the file and restart the agent"},
		{"readable by all", string(good), 0o644, 0, "can be read or written by others", "chmod 600"},
		{"somebody else's", string(good), 0o600, s.host.UID, "belongs to another user", "as the user whose agent it is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(env.ShortDir(t), "S.file")
			require.NoError(t, os.WriteFile(path, []byte(c.content), c.mode))
			require.NoError(t, os.Chmod(path, c.mode))
			require.NoError(t, os.Chown(path, c.uid, -1))
			r := s.run(t, "--agent-socket", path, "-N", "host")
			require.Equal(t, 255, r.code)
			r.requireTwoLines(t, c.text, c.advice)
			r = s.run(t, "--agent-socket", path, "host", "echo on")
			require.Zero(t, r.code)
			require.Equal(t, "on\n", r.stdout)
			r.requireWarning(t, c.text, c.advice)
		})
	}
}

func TestExtraSocketDisabled(t *testing.T) {
	s := stage{}.set(t)
	require.NoError(t, s.laptop.AppendConfig("gpg-agent.conf", "extra-socket none"))
	require.NoError(t, s.laptop.RestartAgent(t.Context()))
	path, err := s.laptop.ExtraSocket(t.Context())
	require.NoError(t, err)
	require.NoFileExists(t, path)

	p := s.bridge(t)
	s.sign(t)
	c := dial(t, s.socket(t))
	require.Equal(t, "OK\n", c.ask(t, "GETINFO restricted\n"))
	require.Equal(t, "OK\n", c.ask(t, "RESET\n"))
	require.Equal(t, forbidden, c.ask(t, "GETINFO pid\n"))
	require.Equal(t, forbidden, c.ask(t, "OPTION pretend-request-origin=local\n"))
	s.end(t, p)
}

// The main socket is named: it is turned into a restricted connection.
func TestMainSocketIsRestricted(t *testing.T) {
	s := stage{}.set(t)
	path, err := s.laptop.AgentSocket(t.Context())
	require.NoError(t, err)
	p := s.bridge(t, "--agent-socket", path)
	s.sign(t)
	require.Equal(t, forbidden, dial(t, s.socket(t)).ask(t, "GETINFO pid\n"))
	s.end(t, p)
}

// An agent that restricts nothing is refused, and not a byte of the host's
// reaches it.
func TestUnrestrictedAgent(t *testing.T) {
	s := stage{}.set(t)
	fake := startFake(t, func(line string) string {
		switch line {
		case "GETINFO restricted":
			return "ERR 67109120 False <GPG Agent>\n"
		case "GETINFO version":
			return "D 2.2.40\nOK\n"
		}
		return "OK\n"
	})
	r := s.run(t, "--agent-socket", fake.path, "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "not a restricted one", "--allow-unrestricted")

	r = s.run(t, "--agent-socket", fake.path, "host", s.signing()+" 2>&1")
	require.Contains(t, r.stdout, "No agent running")
	r.requireWarning(t, "not a restricted one", "--allow-unrestricted")
	for _, line := range fake.lines() {
		require.Contains(t, []string{"GETINFO restricted", "OPTION pretend-request-origin=remote", "BYE"}, line)
	}

	p := s.bridge(t, "--agent-socket", fake.path, "--allow-unrestricted")
	require.Equal(t, "D 2.2.40\nOK\n", dial(t, s.socket(t)).ask(t, "GETINFO version\n"))
	require.Equal(t, 1, strings.Count(strings.Join(fake.lines(), "\n"), "GETINFO version"))
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
}

// With nothing to offer in its place, the host's own agent stays.
func TestOwnAgentStaysWithoutOurs(t *testing.T) {
	s := stage{}.set(t)
	s.host.Run(t, "gpg --list-keys; gpg-connect-agent /bye")
	agents := s.agents()
	require.Len(t, agents, 1)
	r := s.run(t, "--agent-socket", "/nowhere/S.none", "host", "gpg-connect-agent --no-autostart 'GETINFO pid' /bye")
	require.Zero(t, r.code)
	require.Equal(t, fmt.Sprintf("D %d\nOK\n", agents[0]), r.stdout)
	r.requireWarning(t, "the local agent cannot be used", "gpgconf --launch gpg-agent")
	require.Equal(t, agents, s.agents())
	s.requireSocket(t)
}
