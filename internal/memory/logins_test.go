package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestLoginMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache", "gpg-bridge")
	m, at := NewLogins(dir, env.QuietLog()), time.Unix(1700000000, 0)
	recall := func(account string) string {
		answer, when := m.Answer(account)
		if when.IsZero() {
			return "?"
		}
		require.Equal(t, at, when)
		return answer
	}
	require.Equal(t, "?", recall("a"))
	m.SetAnswer("", "/x", at)
	require.NoDirExists(t, dir)
	for account, answer := range map[string]string{"a": "", "b": "-", "c": "/home/zoe/x y\n:ü"} {
		m.SetAnswer(account, "/before", at)
		m.SetAnswer(account, answer, at)
		require.Equal(t, answer, recall(account))
	}
	info, err := os.Stat(filepath.Join(dir, loginMemoryName))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	content, err := os.ReadFile(filepath.Join(dir, loginMemoryName))
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(content), "\n"))
	for _, line := range []string{"a 1700000000:", "b 1700000000:LQ", "c 1700000000:L2hvbWUvem9lL3ggeQo6w7w"} {
		require.Contains(t, string(content), line+"\n", "for those who run another version")
	}

	m.SetAnswer("a", strings.Repeat("x", maxLoginAnswer+1), at)
	require.Equal(t, "", recall("a"))
	for i := range maxStateEntries + 1 { // a full file is still read
		m.SetAnswer(fmt.Sprintf("%064d", i), strings.Repeat("x", maxLoginAnswer), at)
	}
	require.Equal(t, "?", recall(fmt.Sprintf("%064d", 0)))
	require.Len(t, recall(fmt.Sprintf("%064d", 1)), maxLoginAnswer)

	require.NoError(t, os.WriteFile(filepath.Join(dir, loginMemoryName), []byte("a x:\nb 17:%\nc -5:\nd 0:\n"), 0o600))
	for _, account := range []string{"a", "b", "c", "d"} {
		require.Equal(t, "?", recall(account))
	}
}
