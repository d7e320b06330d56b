package sshconfig

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
}

func requireFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, text, string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Equal(t, mode, info.Mode().Perm())
	}
}

// names are the files in a directory, in which nothing must be left over.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path)
	require.NoError(t, err)
	return f
}

func TestReplace(t *testing.T) {
	t.Run("keeps the mode", func(t *testing.T) {
		for _, mode := range []os.FileMode{0o600, 0o644, 0o400} {
			path := filepath.Join(t.TempDir(), "config")
			write(t, path, "old", mode)
			require.NoError(t, open(t, path).Replace([]byte("new")))
			requireFile(t, path, "new", mode)
			require.Equal(t, []string{"config"}, names(t, filepath.Dir(path)))
		}
	})
	t.Run("makes file and directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), ".ssh")
		f := open(t, filepath.Join(dir, "config"))
		require.Nil(t, f.Data())
		require.NoError(t, f.Replace([]byte("new")))
		requireFile(t, filepath.Join(dir, "config"), "new", 0o600)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		}
	})
	t.Run("follows links", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "dotfiles"), 0o700))
		target, link := filepath.Join(dir, "dotfiles", "ssh"), filepath.Join(dir, "config")
		write(t, target, "old", 0o644)
		require.NoError(t, os.Symlink("dotfiles/ssh", filepath.Join(dir, "other")))
		require.NoError(t, os.Symlink("other", link))
		f := open(t, link)
		backup, err := f.Backup(func([]byte) bool { return false })
		require.NoError(t, err)
		require.Equal(t, dir+"/dotfiles/ssh.gpg-bridge.bak", backup)
		require.NoError(t, f.Replace([]byte("new")))
		requireFile(t, target, "new", 0o644)
		info, err := os.Lstat(link)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink)
	})
	t.Run("not over somebody's change", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "config")
		missing := open(t, path)
		write(t, path, "old", 0o600)
		f := open(t, path)
		write(t, path, "theirs", 0o600)
		for _, f := range []*File{missing, f} {
			require.ErrorIs(t, f.Replace([]byte("ours")), errChanged)
			require.ErrorIs(t, f.Remove(), errChanged)
		}
		requireFile(t, path, "theirs", 0o600)
		require.Equal(t, []string{"config"}, names(t, filepath.Dir(path)))
	})
}

func TestReplaceKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: only root gives files away")
	}
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "old", 0o640)
	require.NoError(t, os.Chown(path, 1234, 2345))
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, open(t, path).Replace([]byte("new")))
	after, err := os.Stat(path)
	require.NoError(t, err)
	requireFile(t, path, "new", 0o640)
	require.Equal(t, owner(before), owner(after))
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	back := func(text string) string {
		t.Helper()
		write(t, path, text, 0o644)
		f := open(t, path)
		backup, err := f.Backup(func(old []byte) bool { return bytes.Equal(old, f.Data()) })
		require.NoError(t, err)
		requireFile(t, backup, text, 0o600)
		return strings.TrimPrefix(backup, path)
	}
	require.Equal(t, ".gpg-bridge.bak", back("one"))
	require.Equal(t, ".gpg-bridge.bak", back("one"))
	require.Equal(t, ".gpg-bridge.bak.1", back("two"))
	require.Equal(t, ".gpg-bridge.bak.2", back("three"))
	require.Equal(t, ".gpg-bridge.bak", back("one"))
	requireFile(t, path+".gpg-bridge.bak.1", "two", 0o600)
	require.Len(t, names(t, dir), 4)
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Symlink("nowhere", path("dangling")))
	require.NoError(t, os.Mkdir(path("directory"), 0o700))
	write(t, path("long"), strings.Repeat("# a line\n", maxSize/9+1), 0o600)
	write(t, path("file"), "", 0o600)
	for _, name := range []string{"dangling", "directory", "long", "file/config"} {
		_, err := Open(path(name))
		var file *FileError
		require.ErrorAs(t, err, &file, name)
		require.NotEmpty(t, file.Hint())
		require.Equal(t, path(name), file.Path)
	}
}
