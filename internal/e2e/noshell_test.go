package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// hook is a forced command that does something each time.
func hook(t *testing.T) *scene {
	t.Helper()
	return stage{sshd: sshd.Config{KeyOptions: `command="echo ran >>~/ran; echo deployed; exit 3"`}}.set(t)
}

// ran is how often the forced command has run.
func (s *scene) ran(t *testing.T) int {
	t.Helper()
	return strings.Count(s.host.Run(t, "cat ran 2>/dev/null || true"), "ran")
}

// What a command is forced on is prepared once: from then on, for an hour at least, a session
// runs the command as often as plain ssh does. Who wants a login shell is told each time.
func TestForcedCommandRunsOnce(t *testing.T) {
	s := hook(t)
	session := func(text, advice string, args ...string) {
		t.Helper()
		r := s.run(t, append(args, "-T", "host")...)
		require.Equal(t, 3, r.code)
		require.Equal(t, "deployed\n", r.stdout)
		r.requireWarning(t, text, advice)
	}
	session(`runs no shell commands; it says "deployed"`, "--remote-socket")
	require.Equal(t, 2, s.ran(t), "nobody can know before")
	for want := 3; want < 5; want++ {
		session("runs no shell commands, as it turned out on 20", "--takeover asks again")
		require.Equal(t, want, s.ran(t))
	}
	r := s.run(t, "-N", "host")
	require.Equal(t, 255, r.code)
	r.requireTwoLines(t, "runs no shell commands, as it turned out on 20", "--takeover asks again")
	require.Equal(t, 4, s.ran(t))

	session(`runs no shell commands; it says "deployed"`, "--remote-socket", "--takeover")
	require.Equal(t, 6, s.ran(t))
}

// Who runs a command, or sftp, on an account for nothing else is not told that it has no shell,
// except at -v. Who wants nothing but the bridge is, without our script, which git-shell quotes.
func TestAccountForGitOrSFTP(t *testing.T) {
	for name, c := range map[string]struct{ forced, calls string }{
		"git": {
			env.Tool(t, "git-shell") + ` -c "$SSH_ORIGINAL_COMMAND"`,
			`cd "$HOME"; GIT_SSH_COMMAND="$SSH -F $CONF" GIT_SSH_VARIANT=ssh; export GIT_SSH_COMMAND GIT_SSH_VARIANT; ` +
				env.Tool(t, "git") + ` ls-remote host:repo.git`,
		},
		"sftp": {"internal-sftp", env.Tool(t, "sftp") + ` -b /dev/null -F "$CONF" -S "$SSH" host`},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage{sshd: sshd.Config{Options: []string{"ForceCommand " + c.forced}}}.set(t)
			s.host.Run(t, "git init -q --bare repo.git")
			ssh := filepath.Join(t.TempDir(), "ssh")
			require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\nexec "+program+` ssh "$@"`+"\n"), 0o700))
			for range 2 { // when it is not known yet, and when it is
				cmd := exec.Command(env.Tool(t, "sh"), "-c", c.calls)
				cmd.Env = []string{"SSH=" + ssh, "CONF=" + s.sshd.ConfigFile}
				r := launchAs(t, cmd, s.laptop, nil).wait(t)
				r.requireOK(t)
			}
			require.Contains(t, s.run(t, "-v", "host", "anything").stderr, "runs no shell commands")
			r := s.run(t, "--takeover", "-N", "host")
			require.Equal(t, 255, r.code)
			r.requireTwoLines(t, "the account on the host runs no shell commands", "--remote-socket")
			require.NotContains(t, r.stderr, "sh -c")
		})
	}
}

// Where the account has got a shell, --takeover finds out.
func TestForcedCommandThatIsNoMore(t *testing.T) {
	s := hook(t)
	s.run(t, "host")
	s.sshd.SetKeyOptions(t, "")
	r := s.run(t, "host", "echo on")
	require.Equal(t, "on\n", r.stdout)
	r.requireWarning(t, "runs no shell commands, as it turned out on", "--takeover asks again")
	s.runSigning(t, "--takeover")
	s.runSigning(t)
}

// A forced command that takes long, and that lets nobody in beside it, delays no
// session; and it is remembered although the session has ended before it.
func TestForcedCommandThatTakesLong(t *testing.T) {
	s := stage{sshd: sshd.Config{KeyOptions: `command="echo ran >>~/ran; ` +
		`if mkdir lock; then until [ -e go ]; do sleep 0.1; done; fi 2>/dev/null; echo deployed"`}}.set(t)
	t.Cleanup(func() { s.host.Run(t, "touch go") })
	require.Equal(t, "deployed\n", s.run(t, "host", "anything").stdout, "beside the first")
	require.Equal(t, 2, s.ran(t))
	r := s.run(t, "-T", "host")
	require.Equal(t, "deployed\n", r.stdout)
	r.requireWarning(t, "runs no shell commands, as it turned out on 20", "--takeover asks again")
	require.Equal(t, 3, s.ran(t))
}

var rememberedUntil = regexp.MustCompile(`(?m)^([0-9a-f]+ [0-9]+):([0-9]+)$`)

// A start-up file that fails or hangs for once, on an account that has a shell, is
// looked at again an hour later; then nothing is remembered any more.
func TestShellInTroubleForOnceIsNoForcedCommand(t *testing.T) {
	for name, trouble := range map[string]string{
		"fails": "echo 'fork: retry: Resource temporarily unavailable' >&2; exit 254",
		"hangs": "until [ -e ~/go ]; do sleep 0.1; done",
	} {
		t.Run(name, func(t *testing.T) {
			s := stage{}.set(t)
			s.host.WriteFile(t, ".bashrc", []byte("if mkdir ~/once 2>/dev/null; then "+trouble+"; fi\n"), 0o600)
			require.Zero(t, s.run(t, "host", "true").code)
			s.host.WriteFile(t, "go", []byte("go"), 0o600)
			r := s.run(t, "-T", "host")
			r.requireWarning(t, "runs no shell commands, as it turned out on 20", "and any session does after 20")

			memory := filepath.Join(s.laptop.Dir(), "cache", "gpg-bridge", "no-shell")
			before, err := os.ReadFile(memory)
			require.NoError(t, err)
			hourLater := rememberedUntil.ReplaceAll(before, []byte("$1:1"))
			require.NotEqual(t, string(before), string(hourLater))
			require.NoError(t, os.WriteFile(memory, hourLater, 0o600))
			s.runSigning(t)
			after, err := os.ReadFile(memory)
			require.NoError(t, err)
			require.Empty(t, string(after))
			s.runSigning(t)
		})
	}
}
