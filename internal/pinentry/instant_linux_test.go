package pinentry

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// TestNow: it is the clock of the processes, even on a machine that has slept for an hour
// since it was started. A time namespace simulates that; it cannot simulate a sleep during
// the test.
func TestNow(t *testing.T) {
	const slept = "GPG_BRIDGE_TEST_SLEPT"
	if os.Getenv(slept) == "" {
		again := exec.CommandContext(t.Context(), env.Tool(t, "unshare"), "--user", "--map-root-user", "--time", "--boottime", "3600", "--fork",
			os.Args[0], "-test.run=^TestNow$", "-test.v")
		again.Env = append(os.Environ(), slept+"=1")
		out, err := again.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestNow")
	}
	before := Now()
	child := exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	stat, err := readStat(child.Process.Pid)
	require.NoError(t, err)
	require.Greater(t, stat.started(), before.Add(-50*time.Millisecond))
	require.Less(t, stat.started(), Now())
}
