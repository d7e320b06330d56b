//go:build unix

package hostkey

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshkeys"
)

// A link stays a link, and the file that it leads to keeps its mode and owner. What it was
// is kept beside it.
func TestUpdateThroughALink(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "[h]:2222 {KEY}\n")
	target, link := resolved.UserKnownHostsFiles[0], filepath.Join(t.TempDir(), "known_hosts")
	require.NoError(t, os.Chmod(target, 0o640))
	owner := os.Geteuid()
	if owner == 0 {
		owner = 12345
		require.NoError(t, os.Chown(target, owner, owner))
	}
	require.NoError(t, os.Symlink(target, link))
	resolved.UserKnownHostsFiles[0] = link
	for range 2 { // the second time there is a backup
		update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, sshkeys.New(t)))
		require.NoError(t, err)
		update.keys[1].proved = true
		require.NoError(t, update.Write(t.Context()))
	}
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	info, err = os.Stat(target)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	require.Equal(t, owner, int(info.Sys().(*syscall.Stat_t).Uid))
	require.Len(t, mustRead(t, target), 2)
	require.Len(t, mustRead(t, target+".old"), 2)
}

// A file that cannot be written stays what it is.
func TestUpdateThatCannotBeWritten(t *testing.T) {
	k := newHostKeysOfTest(t)
	resolved := k.config(t, "[h]:2222 {KEY}\n")
	file := resolved.UserKnownHostsFiles[0]
	update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, k.other))
	require.NoError(t, err)
	update.keys[1].proved = true
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(file+".old", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(file+".old", "x"), nil, 0o600)) // is not removed
	require.Error(t, update.Write(t.Context()))
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.NoError(t, os.Remove(file))
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	require.ErrorContains(t, update.Write(t.Context()), "not a regular file")
}

// A device stays a device, for root too, under its own name and through a link, whatever other
// files there are.
func TestUpdateOfADevice(t *testing.T) {
	device := filepath.Join(t.TempDir(), "null")
	if err := exec.Command("mknod", device, "c", "1", "3").Run(); err != nil {
		t.Skipf("a device can be made by root only: %v", err)
	}
	if file, err := os.OpenFile(device, os.O_RDWR, 0); err == nil {
		require.NoError(t, file.Close())
	} else {
		t.Skipf("no device can be used here: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(device, link))
	for _, file := range []string{device, link} {
		k := newHostKeysOfTest(t)
		resolved := k.config(t, "[h]:2222 {KEY}\n")
		known := resolved.UserKnownHostsFiles[0]
		resolved.UserKnownHostsFiles = []string{file, known}
		update, err := trusting(t, resolved, k, "127.0.0.1").Announced(t.Context(), announcement(k.key, k.other))
		require.NoError(t, err)
		update.keys[1].proved = true
		require.ErrorContains(t, update.Write(t.Context()), "not a regular file")
		resolved.UserKnownHostsFiles = []string{known, file}
		require.NoError(t, update.Write(t.Context()))
		require.Len(t, mustRead(t, known), 2)
		info, err := os.Stat(device)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeCharDevice)
		require.NoFileExists(t, device+".old")
	}
}
