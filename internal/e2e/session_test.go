package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

func TestExitStatus(t *testing.T) {
	s := stage{}.set(t)
	for _, c := range []struct {
		command string
		code    int
	}{
		{"true", 0},
		{"exit 3", 3},
		{"kill -9 $$", 255}, // as ssh: no status, but a signal
		{"no-such-program-at-all", 127},
	} {
		r := s.run(t, "host", c.command)
		require.Equal(t, c.code, r.code, "%s: %s", c.command, r.stderr)
		require.NotContains(t, r.stderr, "gpg-bridge:")
		s.requireNoSocket(t)
	}
	r := launch(t, s.laptop, nil, s.args()...).wait(t)
	require.Equal(t, 255, r.code)
	require.Contains(t, r.stderr, "usage: gpg-bridge ssh [")
	s.sshd.Stop()
	require.Equal(t, 255, s.run(t, "host", "true").code)
}

func TestStandardStreams(t *testing.T) {
	s := stage{}.set(t)
	input := strings.Repeat("a line of many\n", 100_000)
	r := launch(t, s.laptop, strings.NewReader(input), s.args("host", "cat; echo said >&2")...).wait(t)
	require.Zero(t, r.code)
	require.Equal(t, "said\n", r.stderr)
	require.True(t, input == r.stdout, "%d bytes of %d", len(r.stdout), len(input))

	// The words of a command are joined with spaces, and the host's shell
	// takes them apart, as with ssh.
	r = s.run(t, "host", "echo", "a  b", "'c  d'", "-N")
	r.requireOK(t)
	require.Equal(t, "a b c  d -N\n", r.stdout)

	r = launch(t, s.laptop, strings.NewReader("echo from the shell\nexit 4\n"), s.args("host")...).wait(t)
	require.Equal(t, "from the shell\n", r.stdout)
	require.Equal(t, 4, r.code)
}

func TestFlagsAfterTheHost(t *testing.T) {
	s := stage{}.set(t)
	r := launch(t, s.laptop, nil, "ssh", "host", "-F", s.sshd.ConfigFile, "-T", "-l", s.host.Name, "--keys=none", "echo", "-n", "x").wait(t)
	r.requireOK(t)
	require.Equal(t, "x", r.stdout)
	r = launch(t, s.laptop, nil, "ssh", "-F", s.sshd.ConfigFile, "host", "--", "echo", "x").wait(t)
	r.requireOK(t)
	require.Equal(t, "x\n", r.stdout)
	r = s.run(t, "host", "--frobnicate", "true")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "--frobnicate", "gpg-bridge ssh --help")
}

const askTerminal = "test -t 0 && test -t 1 && echo terminal || echo none"

func TestTerminalOnTheHost(t *testing.T) {
	s := stage{}.set(t)
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "none\n"},
		{[]string{"-t"}, "none\n"}, // as ssh: there is no terminal here
		{[]string{"-tt"}, "terminal\r\n"},
		{[]string{"-t", "-t"}, "terminal\r\n"},
		{[]string{"-o", "RequestTTY=force"}, "terminal\r\n"},
		{[]string{"-tt", "-T"}, "none\n"},
	} {
		r := s.run(t, append(c.flags, "host", askTerminal)...)
		require.Zero(t, r.code, "%s", r.stderr)
		require.Equal(t, c.want, r.stdout, "%v", c.flags)
	}
}

// onTerminal runs gpg-bridge ssh with a terminal here, that of script(1).
func (s *scene) onTerminal(t testing.TB, args ...string) result {
	t.Helper()
	line := program
	for _, arg := range s.args(args...) {
		line += " '" + arg + "'"
	}
	cmd := exec.Command(env.Tool(t, "script"), "-qec", line, "/dev/null")
	// script ends when its input does, and the keyboard has no end.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return launchAs(t, cmd, s.laptop, r).wait(t)
}

func TestTerminalHere(t *testing.T) {
	s := stage{}.set(t)
	r := s.onTerminal(t, "host", askTerminal)
	require.Equal(t, "none\r\n", r.stdout, "a command gets none unless asked for")
	r = s.onTerminal(t, "-t", "host", askTerminal+"; echo $TERM; exit 5")
	require.Equal(t, "terminal\r\nxterm\r\n", r.stdout)
	require.Equal(t, 5, r.code)
	r = s.onTerminal(t, "-T", "host", askTerminal)
	require.Equal(t, "none\r\n", r.stdout)
}

func TestForwardOnlyUntilASignal(t *testing.T) {
	s := stage{}.set(t)
	for sig, status := range map[syscall.Signal]int{syscall.SIGINT: 255, syscall.SIGTERM: 0, syscall.SIGQUIT: 255} { // ssh's
		p := s.bridge(t)
		s.sign(t)
		p.signal(t, sig)
		r := p.wait(t)
		require.Equal(t, status, r.code, "%v: %s", sig, r.stderr)
		require.Empty(t, r.stdout)
		require.Equal(t, serving+s.socket(t)+"\n", r.stderr, "one line is all")
		s.requireNoSocket(t)
		require.Contains(t, s.signFails(t), "signing failed")
		s.stopAgents(t)
	}
}

// stopAgents ends what a gpg without a bridge has started.
func (s *scene) stopAgents(t testing.TB) {
	t.Helper()
	s.host.Run(t, "gpgconf --kill gpg-agent")
	eventually(t, func() bool { return len(s.agents()) == 0 }, "the host's agent does not end")
}

func TestSignalDuringACommand(t *testing.T) {
	s := stage{}.set(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		p := s.start(t, "host", "echo started; exec sleep 600")
		p.waitFor(t, &p.stdout, "started\n")
		s.requireSocket(t)
		p.signal(t, sig)
		r := p.wait(t)
		require.Equal(t, 255, r.code)
		require.Empty(t, r.stderr)
		s.requireNoSocket(t)
	}
}

func TestSocketIsRemovedInTheEnd(t *testing.T) {
	s := stage{}.set(t)
	r := s.run(t, "host", `test -S "$(gpgconf --list-dirs agent-socket)"`)
	r.requireOK(t)
	s.requireNoSocket(t)
}

// A server that grants one session at a time gets one at a time.
func TestOneSessionOnly(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"MaxSessions 1"}}}.set(t)
	for range 3 {
		s.runSigning(t)
	}
	s.requireNoSocket(t)
}

// The connection ends from the other side: there is no one left to tidy up.
func TestConnectionLost(t *testing.T) {
	s := stage{}.set(t)
	p := s.start(t, "host", "echo started; exec sleep 600")
	p.waitFor(t, &p.stdout, "started\n")
	s.sshd.KillSessions()
	r := p.wait(t)
	require.Equal(t, 255, r.code)
	require.NotEmpty(t, r.stderr)
	s.runSigning(t)
}

func TestQuiet(t *testing.T) {
	s := stage{}.set(t)
	nowhere := env.ShortDir(t) + "/S.none"
	r := s.run(t, "--agent-socket", nowhere, "host", "echo on; echo said >&2")
	require.Contains(t, r.stderr, "gpg-bridge: warning: ")
	r = s.run(t, "-q", "--agent-socket", nowhere, "host", "echo on; echo said >&2")
	require.Equal(t, result{stdout: "on\n", stderr: "said\n"}, r)

	p := s.start(t, "-q", "-N", "host")
	eventually(t, func() bool {
		_, err := os.Lstat(s.socket(t))
		return err == nil
	}, "no socket")
	s.importKey(t)
	s.sign(t)
	p.signal(t, syscall.SIGTERM)
	require.Equal(t, result{}, p.wait(t))

	s.sshd.Stop()
	r = s.run(t, "-q", "host", "true")
	require.Equal(t, 255, r.code)
	require.Empty(t, r.stderr, "as ssh -q")
}

func TestVerboseKeepsTheFormat(t *testing.T) {
	s := stage{}.set(t)
	r := s.run(t, "-v", "host", "true")
	require.Zero(t, r.code)
	r.stderr = regexp.MustCompile(`(?m)^(OpenSSH_|debug1: ).*\n`).ReplaceAllString(r.stderr, "") // what ssh -G says
	require.NotEmpty(t, r.messages(t))
}

// Killed without a chance: what stays at the path is no obstacle.
func TestKilledBridge(t *testing.T) {
	s := stage{}.set(t)
	for range 3 {
		p := s.bridge(t)
		s.sign(t)
		require.NoError(t, p.cmd.Process.Kill())
		<-p.ended
		s.requireSocket(t)
		r := s.runSigning(t)
		require.NotContains(t, r.stderr, "gpg-bridge:", "at once, while sshd may not have noticed")
		s.requireNoSocket(t)
	}
}
