//go:build linux || darwin

package hostkey

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshkeys"
)

// known_hosts may be a link, for instance into a repository of such files. Like ssh, we
// write to what it points to, and leave link, owner and mode as they are.
func TestAppendKnownHostThroughALink(t *testing.T) {
	for name, c := range map[string]struct {
		content *string
		mode    os.FileMode
	}{
		"file":      {new("# mine\n"), 0o644},
		"read-only": {new(""), 0o600},
		"dangling":  {nil, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "dotfiles-known_hosts")
			if c.content != nil {
				require.NoError(t, os.WriteFile(target, []byte(*c.content), c.mode))
			}
			link := filepath.Join(t.TempDir(), "known_hosts")
			require.NoError(t, os.Symlink(target, link))
			key := sshkeys.New(t)
			require.NoError(t, appendKnownHost(t.Context(), link, knownHost{name: "h", key: key}, false))
			info, err := os.Lstat(link)
			require.NoError(t, err)
			require.Equal(t, os.ModeSymlink, info.Mode().Type())
			info, err = os.Stat(target)
			require.NoError(t, err)
			require.Equal(t, c.mode, info.Mode().Perm())
			lines, _ := readKnownHosts(t.Context(), []string{target})
			v, _ := check(keysFor(lines, "h"), key)
			require.Equal(t, hostKnown, v)
		})
	}
}

// The file and directory that we create are private to the user.
func TestAppendKnownHostMakesPrivateFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".ssh", "known_hosts")
	require.NoError(t, appendKnownHost(t.Context(), file, knownHost{name: "h", key: sshkeys.New(t)}, false))
	for path, mode := range map[string]os.FileMode{filepath.Dir(file): 0o700, file: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
}
