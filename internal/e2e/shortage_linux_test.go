package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/share"
)

// A bridge that has no descriptor left for a while can be asked again afterwards.
func TestControlSocketOutlivesAShortage(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.up(t)
	pid := b.status(t)[0].PID
	var before unix.Rlimit
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: before.Max}, nil))
	require.Contains(t, b.do(t, "status").stderr, "does not answer")
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	require.Equal(t, pid, b.await(t, func(s share.Status) bool { return s.State == share.Up }).PID)
}
