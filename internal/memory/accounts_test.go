package memory

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestAccountMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "gpg-bridge")
	m := NewAccounts(dir, env.QuietLog())
	found := NoShell{time.Unix(1700000000, 5), time.Unix(1700000060, 5)}
	require.Zero(t, m.NoShell("a"))
	m.SetNoShell("a", NoShell{})
	require.NoDirExists(t, dir, "there was nothing to forget")

	m.SetNoShell("a", found)
	m.SetNoShell("b", found)
	m.SetNoShell("b", NoShell{})
	m.SetNoShell("", found)
	m.SetNoShell("c", NoShell{Found: found.Found})
	m = NewAccounts(dir, env.QuietLog())
	require.Equal(t, NoShell{time.Unix(1700000000, 0), time.Unix(1700000060, 0)}, m.NoShell("a"))
	require.True(t, m.NoShell("a").Known(time.Unix(1700000059, 0)))
	require.False(t, m.NoShell("a").Known(time.Unix(1700000060, 0)))
	require.True(t, m.NoShell("a").Known(time.Unix(1699999941, 0)), "the clock was set back by little")
	require.False(t, m.NoShell("a").Known(time.Unix(1699999940, 0)), "it was far ahead")
	require.True(t, m.NoShell("c").Known(time.Now()), "for good")
	require.False(t, m.NoShell("b").Known(time.Now()))
	require.Zero(t, m.NoShell("b"))
	require.Zero(t, m.NoShell(""))
	info, err := os.Stat(filepath.Join(dir, accountMemoryName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(filepath.Join(dir, accountMemoryName))
	require.NoError(t, err)
	require.Equal(t, "a 1700000000:1700000060\nc 1700000000:0\n", string(content), "for those who run another version")
	m.SetNoShell("a", NoShell{})
	require.Zero(t, m.NoShell("a"))
	require.NotZero(t, m.NoShell("c"))

	for _, word := range []string{"yesterday", "1700000000", "1:", "1:-1", "0:0", ":5", "1:2:3"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, accountMemoryName), []byte("a "+word+"\n"), 0o600))
		require.Zero(t, m.NoShell("a"), word)
	}
	require.Zero(t, NewAccounts("", env.QuietLog()).NoShell("a"))
	NewAccounts("", env.QuietLog()).SetNoShell("a", found)
}
