package private

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Only on WSL's mounts of Windows drives does a mode say nothing.
func TestModeSaysNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		filesystem int64
		release    string
		want       bool
	}{
		{unix.V9FS_MAGIC, "5.15.167.4-microsoft-standard-WSL2", true},
		{unix.V9FS_MAGIC, "4.19.128-Microsoft-standard", true},
		{unix.V9FS_MAGIC, "6.1.0-18-amd64", false}, // a virtual machine's share
		{unix.V9FS_MAGIC, "", false},
		{unix.EXT4_SUPER_MAGIC, "5.15.167.4-microsoft-standard-WSL2", false},
		{unix.MSDOS_SUPER_MAGIC, "5.15.167.4-microsoft-standard-WSL2", false},
		{unix.FUSE_SUPER_MAGIC, "5.15.167.4-microsoft-standard-WSL2", false},
		{unix.TMPFS_MAGIC, "", false},
	} {
		require.Equal(t, test.want, isWindowsDrive(test.filesystem, test.release), "%#x %s", test.filesystem, test.release)
	}
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.False(t, ModeSaysNothing(file), "of a real file here")
	require.False(t, modeSaysNothingAt(path), "of a real file here")
	require.NoError(t, file.Close())
	require.False(t, ModeSaysNothing(file), "of none")
	require.False(t, modeSaysNothingAt("/"))
	require.False(t, modeSaysNothingAt(path+"x"), "of none")
}
