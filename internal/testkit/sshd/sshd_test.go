package sshd_test

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gpg-bridge/internal/testkit/sshd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func output(t *testing.T, s *sshd.Server, args ...string) string {
	t.Helper()
	out, err := s.SSH(args...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, s.Log())
	return strings.TrimSpace(string(out))
}

func TestCurrentUserLogsInAndServerRestarts(t *testing.T) {
	s := sshd.Start(t, sshd.Config{Options: []string{"SetEnv GREETING=hello"}})
	require.Equal(t, s.User+" hello", output(t, s, "host", `echo "$(id -un) $GREETING"`))
	s.Restart()
	require.Equal(t, "again", output(t, s, "host", "echo again"))
	require.Contains(t, s.Log(), "Accepted publickey")
	s.Stop()
	_, err := net.Dial("tcp", s.Addr)
	require.Error(t, err)
}

func TestAccountLogsInWithEachShell(t *testing.T) {
	for _, shell := range []string{"/bin/bash", "/bin/dash", "fish", "tcsh"} {
		t.Run(filepath.Base(shell), func(t *testing.T) {
			a := sshd.NewAccount(t, sshd.AccountConfig{Shell: shell})
			s := sshd.Start(t, sshd.Config{Account: a})
			require.Equal(t, a.Name+" "+a.Home, output(t, s, "host", "id -un | tr '\\n' ' '; pwd"))
			require.Equal(t, a.Name, strings.TrimSpace(a.Run(t, "id -un")))
			a.WriteFile(t, "some/dir/file", []byte("text"), 0o600)
			require.Equal(t, "text", output(t, s, "host", "cat some/dir/file"))
			require.Equal(t, "text", string(a.ReadFile(t, "some/dir/file")))
		})
	}
}

func TestNologinRunsNothing(t *testing.T) {
	a := sshd.NewAccount(t, sshd.AccountConfig{Shell: "nologin"})
	s := sshd.Start(t, sshd.Config{Account: a})
	out, err := s.SSH("host", "echo it ran").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "not available")
}

func TestAccountWithoutGPG(t *testing.T) {
	a := sshd.NewAccount(t, sshd.AccountConfig{NoGPG: true})
	s := sshd.Start(t, sshd.Config{Account: a})
	const script = "command -v gpg gpgconf; command -v cat sed rm >/dev/null && echo rest"
	require.Equal(t, "rest", output(t, s, "host", script))
	require.Equal(t, "rest\n", a.Run(t, script))
}

func TestKeyOptionsAndMatchHold(t *testing.T) {
	s := sshd.Start(t, sshd.Config{KeyOptions: `command="echo forced"`})
	require.Equal(t, "forced", output(t, s, "host", "echo mine"))
	s = sshd.Start(t, sshd.Config{Options: []string{"Match all", "ForceCommand echo matched"}})
	require.Equal(t, "matched", output(t, s, "host", "echo mine"))
}

func TestKillSessionsEndsWhatRunsAndServerGoesOn(t *testing.T) {
	a := sshd.NewAccount(t, sshd.AccountConfig{})
	s := sshd.Start(t, sshd.Config{Account: a})
	// A process that has left its session is found, too.
	cmd := s.SSH("host", "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo up; sleep 600")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = out.Read(make([]byte, 3))
	require.NoError(t, err)
	s.KillSessions()
	require.Error(t, cmd.Wait())
	require.Empty(t, a.Processes())
	require.Equal(t, "again", output(t, s, "host", "echo again"))
}

func TestAccountIsGoneAfterwards(t *testing.T) {
	var a *sshd.Account
	t.Run("account", func(t *testing.T) {
		a = sshd.NewAccount(t, sshd.AccountConfig{RuntimeDir: true})
		require.DirExists(t, filepath.Join("/run/user", strconv.Itoa(a.UID)))
		cmd := a.Command("sleep", "600")
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Release() })
		require.Eventually(t, func() bool { return len(a.Processes()) == 1 }, 30*time.Second, time.Millisecond)
	})
	if a == nil {
		t.Skip("not root")
	}
	_, err := user.Lookup(a.Name)
	require.Error(t, err)
	require.NoDirExists(t, a.Home)
	require.NoDirExists(t, filepath.Join("/run/user", strconv.Itoa(a.UID)))
	require.Empty(t, a.Processes())
	_, err = os.Stat(a.Home)
	require.ErrorIs(t, err, os.ErrNotExist)
}
