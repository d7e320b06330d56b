package release

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// TestNothingStaysMounted: what is mounted for a program is gone when it has ended, even if it
// was killed; and the program cannot change the host's files.
func TestNothingStaysMounted(t *testing.T) {
	for _, suite := range Suites() {
		inside := Inside(t, suite)
		said, err := exec.Command(inside[0], append(inside[1:], "cat", "/proc/self/mounts")...).Output()
		require.NoError(t, err)
		require.Contains(t, string(said), " / ")
		require.NoError(t, exec.Command(inside[0], append(inside[1:], "sh", "-c", "! touch /etc/x && ! touch /usr/x && touch /tmp /run/x")...).Run())

		cmd := exec.Command(inside[0], append(inside[1:], "sleep", "600")...)
		require.NoError(t, cmd.Start())
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		mounts, err := os.ReadFile("/proc/self/mounts")
		require.NoError(t, err)
		require.NotContains(t, string(mounts), "/"+suite+"/")
	}
}

// TestGnuPG: the programs are the host's, and get their arguments unchanged.
func TestGnuPG(t *testing.T) {
	for _, suite := range Suites() {
		dir := GnuPG(t, suite)
		inside := Inside(t, suite)
		want, err := exec.Command(inside[0], append(inside[1:], "gpg", "--version")...).Output()
		require.NoError(t, err)
		got, err := exec.Command(dir+"/gpg", "--version").Output()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		said, err := exec.Command(dir+"/gpg", "--homedir", env.ShortDir(t), "--no  'such").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(said), "--no  'such")
	}
}

func TestHostThatIsNotThere(t *testing.T) {
	path := script(t)
	env.Tool(t, "sh")
	cmd := exec.Command("sh", path, "run", "nosuch", "true")
	cmd.Env = append(os.Environ(), "GPG_BRIDGE_HOSTS_DIR="+t.TempDir())
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "host.sh: no host of Debian nosuch in ")
	require.Contains(t, string(said), path+" build nosuch")
	require.Equal(t, 1, strings.Count(string(said), "\n"))
}
