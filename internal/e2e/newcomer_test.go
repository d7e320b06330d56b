package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// An account that has never run gpg has no ~/.gnupg, where gpgconf can start no agent.
// A home that GNUPGHOME names is not made.
func TestConnectOfANewAccount(t *testing.T) {
	t.Parallel()
	a := sshd.NewAccount(t, sshd.AccountConfig{})
	laptop := gpghome.ForTest(t)
	require.NoDirExists(t, a.Path(".gnupg"))
	connect := func(home string) result {
		as := a.Command(program)
		cmd := exec.Command(program, "connect")
		cmd.Dir, cmd.SysProcAttr, cmd.Env = as.Dir, as.SysProcAttr, append(as.Env, "GNUPGHOME="+home, "XDG_RUNTIME_DIR=")
		return launchAs(t, cmd, laptop, strings.NewReader("GETINFO version\n")).wait(t)
	}
	r := connect(a.Path("none"))
	require.Equal(t, 1, r.code)
	r.requireTwoLines(t, "which does not exist", "make that directory, with mode 0700, or correct GNUPGHOME")
	require.NoDirExists(t, a.Path("none"))
	require.NoDirExists(t, a.Path(".gnupg"))

	for range 2 {
		r = connect("")
		require.Zero(t, r.code, "%s", r.stderr)
		require.Empty(t, r.stderr)
		require.Regexp(t, `\nD [0-9.]+\nOK\n$`, r.stdout)
	}
	info, err := os.Stat(a.Path(".gnupg"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Contains(t, a.Run(t, "gpg --batch -K 2>&1"), "trustdb created", "gpg finds its home as it would have made it")
}

// Who has no secret key is told so once; who has one, or wants none, is not.
func TestNoSecretKeyHere(t *testing.T) {
	s := stage{}.set(t)
	require.Empty(t, s.run(t, "host", "true").stderr)
	s.laptop = gpghome.ForTest(t)
	require.Empty(t, s.run(t, "--keys", "none", "host", "true").stderr)
	for _, told := range []bool{true, false} {
		r := s.run(t, "host", "echo on")
		require.Zero(t, r.code, "%s", r.stderr)
		require.Equal(t, "on\n", r.stdout)
		if told {
			r.requireWarning(t, "you have no secret key here", "gpg --quick-generate-key")
		} else {
			require.Empty(t, r.stderr)
		}
	}
	s.end(t, s.bridge(t)) // which would say it at every connection
}
