//go:build unix

package agentside

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a killed process left is removed when the next token is put, and nothing else.
func TestOldTokensAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := &Agent{located: filepath.Join(dir, "S.gpg-agent")}
	old, young := time.Now().Add(-2*tokenLife), time.Now().Add(-tokenLife/2)
	name := func(digit string) string { return tokenPrefix + strings.Repeat(digit, 32) }
	put := func(name, content string, at time.Time) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	put(name("1"), "", old)
	put(name("2"), "", young)
	put(name("3"), "content", old)
	put(name("4")+"0", "", old)
	put(name("4")[:40], "", old)
	put(name("A"), "", old)
	put("x"+name("5"), "", old)
	put("other", "", old)
	require.NoError(t, os.Symlink("other", filepath.Join(dir, name("6"))))
	require.NoError(t, os.Mkdir(filepath.Join(dir, name("7")), 0o700))
	require.NoError(t, os.Chtimes(filepath.Join(dir, name("7")), old, old))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name("8")), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(dir, name("8")), old, old))
	if os.Geteuid() == 0 {
		put(name("9"), "", old)
		require.NoError(t, os.Lchown(filepath.Join(dir, name("9")), 12345, -1))
	}
	before, err := os.ReadDir(dir)
	require.NoError(t, err)

	token, remove, err := agent.PutToken()
	require.NoError(t, err)
	require.Regexp(t, tokenName, token)
	require.FileExists(t, filepath.Join(dir, token))
	remove()
	after, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, after, len(before)-1)
	require.NoFileExists(t, filepath.Join(dir, name("1")))
}
