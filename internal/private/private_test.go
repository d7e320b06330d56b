package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// requireInsecure checks that err is an *InsecureError for this path, with text in its
// reason and with advice.
func requireInsecure(t *testing.T, err error, path, text string) {
	t.Helper()
	var insecure *InsecureError
	require.ErrorAs(t, err, &insecure)
	require.Equal(t, path, insecure.Path)
	require.Contains(t, insecure.Reason, text)
	require.NotEmpty(t, insecure.Hint())
}

func TestFiles(t *testing.T) {
	d := open(t, filepath.Join(env.ShortDir(t), "d"))
	_, err := d.Read("a", 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, d.Write("a", []byte("one")))
	require.NoError(t, d.Write("a", []byte("two")))
	data, err := d.Read("a", 3)
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	_, err = d.Read("a", 2)
	require.ErrorIs(t, err, ErrTooLong)
	_, err = d.Create("a")
	require.ErrorIs(t, err, fs.ErrExist)
	for _, text := range []string{" and", " more"} {
		file, err := d.Append("a")
		require.NoError(t, err)
		_, err = file.WriteString(text)
		require.NoError(t, errors.Join(err, file.Close()))
	}
	data, err = d.Read("a", 100)
	require.NoError(t, err)
	require.Equal(t, "two and more", string(data))
	file, err := d.Append("a") // on Windows it could not do it itself
	require.NoError(t, err)
	require.NoError(t, d.Empty("a"))
	_, err = file.WriteString("again")
	require.NoError(t, errors.Join(err, file.Close()))
	data, err = d.Read("a", 100)
	require.NoError(t, err)
	require.Equal(t, "again", string(data))
	require.ErrorIs(t, d.Empty("none"), fs.ErrNotExist)
	require.NoError(t, d.Remove("a"))
	require.NoError(t, d.Remove("a"))
	left, err := os.ReadDir(d.Path())
	require.NoError(t, err)
	require.Empty(t, left)
}

// A reader never sees half of what is written.
func TestWriteIsWhole(t *testing.T) {
	d := open(t, filepath.Join(env.ShortDir(t), "d"))
	require.NoError(t, d.Write("a", []byte(strings.Repeat("0", 8000))))
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for range 50 {
				if d.Write("a", []byte(strings.Repeat(string(rune('1'+i)), 8000))) != nil {
					t.Error("not written")
				}
			}
		})
	}
	defer writers.Wait()
	for range 200 {
		data, err := d.Read("a", 10000)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(string(data[0]), 8000), string(data))
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	d := open(t, filepath.Join(env.ShortDir(t), "d"))
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", "a/"} {
		require.Error(t, d.Write(name, nil), "%q", name)
		require.Error(t, d.Remove(name), "%q", name)
		_, err := d.Read(name, 10)
		require.Error(t, err, "%q", name)
		_, err = d.SocketPath(name)
		require.Error(t, err, "%q", name)
	}
}

func TestSocketPath(t *testing.T) {
	d := open(t, filepath.Join(env.ShortDir(t), "d"))
	room := maxSocketPath - len(d.Path()) - 1
	path, err := d.SocketPath(strings.Repeat("s", room))
	require.NoError(t, err)
	require.Len(t, path, maxSocketPath)
	_, err = d.SocketPath(strings.Repeat("s", room+1))
	var long *SocketPathError
	require.ErrorAs(t, err, &long)
	require.Contains(t, long.Hint(), "XDG_RUNTIME_DIR")
}

func TestParentMustExist(t *testing.T) {
	_, err := Open(filepath.Join(env.ShortDir(t), "no", "d"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
