package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// Without a connection there is nothing to go on with: 255, and two lines.
func TestNoConnection(t *testing.T) {
	s := stage{}.set(t)
	stranger := filepath.Join(env.ShortDir(t), "key")
	require.NoError(t, exec.Command(env.Tool(t, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", stranger).Run())
	public, err := os.ReadFile(stranger + ".pub")
	require.NoError(t, err)
	changed := rewrite(t, s.sshd.KnownHosts, ` ssh-ed25519 .*`, " "+string(public))
	wrongKey := rewrite(t, s.sshd.ConfigFile, `IdentityFile .*`, "IdentityFile "+stranger)

	for _, c := range []struct {
		name         string
		args         []string
		text, advice string
	}{
		{"no such host", []string{"-o", "HostName=x.invalid"}, "ssh: Could not resolve hostname x.invalid: ", "HostName"},
		{"refused key", []string{"-F", wrongKey}, ": Permission denied (publickey).", "authorized_keys"},
		{"no key at all", []string{"-o", "PubkeyAuthentication=no"}, "Permission denied", "IdentityFile"},
		{"changed host key", []string{"-o", "UserKnownHostsFile=" + changed}, "HAS CHANGED", "ssh-keygen -f '" + changed + "' -R "},
		{"unknown host key", []string{"-o", "UserKnownHostsFile=/dev/null"}, "is not known", "compare the fingerprint"},
		{"unknown host key, and asking forbidden", []string{"-o", "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=ask"}, "is not known", "without BatchMode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, rest := range [][]string{{"-N", "host"}, {"host", "echo on"}} {
				r := s.run(t, append(c.args, rest...)...)
				require.Equal(t, 255, r.code)
				require.Empty(t, r.stdout)
				r.requireRefusal(t, c.text, c.advice)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		s.sshd.Stop()
		r := s.run(t, "-N", "host")
		require.Equal(t, 255, r.code)
		r.requireRefusal(t, ": Connection refused\n", "check that sshd runs")
	})
	require.NoDirExists(t, s.host.Path(".gnupg"), "nothing was done on the host")
}

// rewrite is a copy of a file, with what the pattern matches replaced.
func rewrite(t testing.TB, file, pattern, replacement string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, pattern, string(text))
	copied := filepath.Join(env.ShortDir(t), filepath.Base(file))
	text = regexp.MustCompile(pattern).ReplaceAllLiteral(text, []byte(replacement))
	require.NoError(t, os.WriteFile(copied, text, 0o600))
	return copied
}

// A refusal is why a host gives us no socket.
type refusal struct {
	name         string
	stage        stage
	prepare      string // as the account
	text, advice string
	noShell      bool // the account's session says something of its own
}

func refusals() []refusal {
	return []refusal{
		{
			name:  "forwarding disabled",
			stage: stage{sshd: sshd.Config{Options: []string{"AllowStreamLocalForwarding no"}}},
			text:  "its sshd does not allow it", advice: "AllowStreamLocalForwarding must be yes",
		},
		{
			name:  "forwarding disabled with all other",
			stage: stage{sshd: sshd.Config{Options: []string{"DisableForwarding yes"}}},
			text:  "its sshd does not allow it", advice: "DisableForwarding no",
		},
		{
			name:  "restricted key",
			stage: stage{sshd: sshd.Config{KeyOptions: "restrict"}},
			text:  "its sshd does not allow it", advice: "authorized_keys",
		},
		{
			name:  "forced command",
			stage: stage{sshd: sshd.Config{KeyOptions: `command="printf 'no \033[31mshell\n'"`}},
			text:  `runs no shell commands; it says "no \x1b[31mshell"`, advice: "--remote-socket PATH", noShell: true,
		},
		{
			name:  "forced command that says nothing",
			stage: stage{sshd: sshd.Config{Options: []string{"ForceCommand exit 1"}}},
			text:  "runs no shell commands", advice: "--remote-socket PATH", noShell: true,
		},
		{
			name:  "nologin",
			stage: stage{account: sshd.AccountConfig{Shell: "nologin"}},
			text:  `it says "This account is currently not available."`, advice: "--remote-socket PATH", noShell: true,
		},
		{
			name:  "no GnuPG",
			stage: stage{account: sshd.AccountConfig{NoGPG: true}},
			text:  "there is no gpg", advice: "install GnuPG",
		},
		{
			name:    "a directory",
			prepare: `mkdir -p -m 700 .gnupg .gnupg/S.gpg-agent/keep`,
			text:    "a directory is there", advice: "move that directory away",
		},
		{
			name:    "a file",
			prepare: `mkdir -m 700 .gnupg; echo precious >.gnupg/S.gpg-agent`,
			text:    "a file that is not a socket is there", advice: "move that file away",
		},
		{
			name:    "a directory that may not be written to",
			prepare: `mkdir -m 500 .gnupg`,
			text:    "its directory may not be written to", advice: "check the owner and mode",
		},
	}
}

func TestRefusedForward(t *testing.T) {
	for _, c := range refusals() {
		t.Run(c.name, func(t *testing.T) {
			s := c.stage.set(t)
			if c.prepare != "" {
				s.host.Run(t, c.prepare)
			}
			r := s.run(t, "-N", "host")
			require.Equal(t, 255, r.code)
			require.Empty(t, r.stdout)
			r.requireRefusal(t, c.text, c.advice)
			if c.noShell {
				c.text = "runs no shell commands, as it turned out on" // it is not asked again
			}

			if c.noShell {
				r = s.run(t, "-T", "host")
			} else {
				r = s.run(t, "host", "echo on the host; exit 7")
				require.Equal(t, 7, r.code)
				require.Equal(t, "on the host\n", r.stdout)
			}
			r.requireWarning(t, c.text, c.advice)
			r = s.run(t, "-o", "ExitOnForwardFailure=yes", "host", "echo on the host")
			require.Equal(t, 255, r.code)
			require.Empty(t, r.stdout)
			r.requireRefusal(t, c.text, c.advice)
			require.Empty(t, s.agents())
		})
	}
}

// What is not ours stays as it is.
func TestNothingIsRemovedThatIsNoSocket(t *testing.T) {
	s := stage{}.set(t)
	s.host.WriteFile(t, ".gnupg/S.gpg-agent", []byte("precious\n"), 0o600)
	require.Equal(t, 255, s.run(t, "-N", "host").code)
	require.Equal(t, "precious\n", string(s.host.ReadFile(t, ".gnupg/S.gpg-agent")))
}

// An account without a shell, or without gpgconf, can be forwarded to: nothing
// is run there.
func TestRemoteSocketWithoutAShell(t *testing.T) {
	s := stage{account: sshd.AccountConfig{Shell: "nologin"}}.set(t)
	s.importKey(t)
	path := s.socket(t)
	p := s.bridge(t, "--remote-socket", path)
	s.sign(t)
	s.end(t, p)

	// sshd leaves the socket, and nobody may remove it.
	r := s.run(t, "--remote-socket", path, "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "refused to", "")
	r = s.run(t, "--remote-socket", "relative", "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "not an absolute path", "begins with /")
	r = s.run(t, "--remote-socket", "/nowhere/"+strings.Repeat("x", 100), "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "refused to", "")
}

// otherLaptop forwards the agent of somebody else with the real ssh, and
// returns when it serves.
func (s *scene) otherLaptop(t *testing.T) {
	t.Helper()
	other := gpghome.ForTest(t)
	require.NoError(t, other.StartAgent(t.Context()))
	extra, err := other.ExtraSocket(t.Context())
	require.NoError(t, err)
	s.host.Run(t, "mkdir -p -m 700 .gnupg")
	ssh := s.sshd.SSH("-N", "-o", "ExitOnForwardFailure=yes", "-R", s.socket(t)+":"+extra, "host")
	require.NoError(t, ssh.Start())
	t.Cleanup(func() { _, _ = ssh.Process.Kill(), ssh.Wait() })
	eventually(t, func() bool {
		return strings.Contains(s.host.Run(t, "gpg-connect-agent --no-autostart 'GETINFO restricted' /bye 2>&1 || true"), "OK")
	}, "ssh does not forward")
}

func TestForwardOfAnother(t *testing.T) {
	s := stage{}.set(t)
	s.otherLaptop(t)

	r := s.run(t, "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "another connection already forwards an agent", "--takeover")
	r = s.run(t, "host", "echo on")
	require.Zero(t, r.code)
	require.Equal(t, "on\n", r.stdout)
	r.requireWarning(t, "another connection already forwards an agent", "--takeover")
	require.Equal(t, "OK\n", dial(t, s.socket(t)).ask(t, "GETINFO restricted\n"), "it was left alone")

	p := s.bridge(t, "--takeover")
	s.sign(t)
	s.end(t, p)
	s.requireNoSocket(t)
}

// A second bridge of another laptop is told of the first; and once it has taken
// over, the socket is not the first's to remove.
func TestTwoBridges(t *testing.T) {
	s := stage{}.set(t)
	first := s.bridge(t)
	elsewhere := func(args ...string) *process {
		cmd := exec.Command(program, s.args(args...)...)
		cmd.Env = []string{"XDG_RUNTIME_DIR=" + env.ShortDir(t)}
		return launchAs(t, cmd, s.laptop, nil)
	}
	r := elsewhere("-N", "host").wait(t)
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "another connection already forwards an agent", "--takeover")
	s.sign(t)

	second := elsewhere("--takeover", "-N", "host")
	second.waitFor(t, &second.stderr, serving)
	first.signal(t, syscall.SIGTERM)
	require.Zero(t, first.wait(t).code)
	s.requireSocket(t)
	s.sign(t)
	s.end(t, second)
	s.requireNoSocket(t)
}

// A second bridge of the same laptop waits, and follows the first.
func TestBridgeThatFollows(t *testing.T) {
	s := stage{}.set(t)
	first := s.bridge(t)
	second := s.start(t, "-N", "host")
	second.waitFor(t, &second.stderr, "already serves gpg on host")
	s.sign(t)
	s.end(t, first)
	second.waitFor(t, &second.stderr, serving)
	s.sign(t)
	second.signal(t, syscall.SIGTERM)
	require.Zero(t, second.wait(t).code)
	s.requireNoSocket(t)
}

// Two sessions at once: the second uses the bridge of the first, and is the
// bridge when that has ended.
func TestSessionThatFollows(t *testing.T) {
	s := stage{}.set(t)
	first, firstIn := s.signer(t)
	second, secondIn := s.signer(t)
	first.waitFor(t, &first.stdout, "up")
	second.waitFor(t, &second.stdout, "up")
	firstIn()
	first.waitFor(t, &first.stdout, "signed")
	firstIn()
	require.Zero(t, first.wait(t).code)
	eventually(t, func() bool {
		return strings.Contains(s.host.Run(t, "gpg-connect-agent --no-autostart 'GETINFO restricted' /bye 2>&1 || true"), "OK")
	}, "the second session does not follow")
	s.host.Run(t, "rm -f signed.asc")
	secondIn()
	second.waitFor(t, &second.stdout, "signed")
	secondIn()
	r := second.wait(t)
	require.Zero(t, r.code)
	require.Empty(t, r.stderr)
	s.requireNoSocket(t)
}

// signer is a session that signs, and then ends, at each call of next.
func (s *scene) signer(t *testing.T) (p *process, next func()) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	p = launch(t, s.laptop, r, s.args("host", "echo up; read line; echo text | gpg --batch --clearsign -o signed.asc && echo signed; read line")...)
	return p, func() {
		_, err := w.WriteString("\n")
		require.NoError(t, err)
	}
}
