//go:build unix

package private

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A place is one that not just anybody can put something at.
func TestCheckPlace(t *testing.T) {
	tmp, own := shared(t), env.ShortDir(t)
	in := func(name string) string { return filepath.Join(tmp, name) }
	require.NoError(t, os.MkdirAll(in("mine/bin"), 0o755))
	require.NoError(t, os.Symlink(own, in("link")))
	require.NoError(t, os.Symlink(in("none"), filepath.Join(own, "out")))
	require.NoError(t, os.Symlink("loop", filepath.Join(own, "loop")))
	require.NoError(t, os.Mkdir(filepath.Join(own, "group"), 0o775))
	require.NoError(t, os.Chmod(filepath.Join(own, "group"), 0o775))
	require.NoError(t, os.WriteFile(filepath.Join(own, "file"), nil, 0o600))
	require.NoError(t, os.Chmod(filepath.Join(own, "file"), 0o666))
	unsticky := filepath.Join(own, "unsticky")
	require.NoError(t, os.MkdirAll(filepath.Join(unsticky, "mine"), 0o755))
	require.NoError(t, os.Chmod(unsticky, 0o777))

	for _, path := range []string{
		"/", "/usr/bin", "/nonexistent/bin", own, in("mine"), in("mine/bin"), in("mine/missing"), in("link"), in("mine/../mine"), filepath.Join(own, "group"),
	} {
		require.NoError(t, CheckPlace(path), path)
	}
	for path, c := range map[string]struct{ where, reason string }{
		tmp:                             {tmp, "everybody may write there"},
		in("none"):                      {in("none"), "anybody could put something there"},
		in("none/bin"):                  {in("none"), "anybody could put something there"},
		in("mine/../none"):              {in("none"), "anybody could put something there"},
		filepath.Join(own, "out"):       {in("none"), "anybody could put something there"},
		filepath.Join(own, "loop"):      {filepath.Join(own, "loop"), "too many symbolic links"},
		filepath.Join(own, "file"):      {filepath.Join(own, "file"), "everybody may write there"},
		filepath.Join(unsticky, "mine"): {unsticky, "everybody may write there"},
	} {
		requireInsecure(t, CheckPlace(path), c.where, c.reason)
	}
}

// What a neighbour has put into a shared directory is refused.
func TestCheckPlaceOfANeighbour(t *testing.T) {
	tmp := shared(t)
	bin, link := filepath.Join(tmp, "bin"), filepath.Join(tmp, "link")
	said, ok := asNeighbour(t, `mkdir "$1" && ln -s /usr/bin "$2"`, bin, link)
	require.True(t, ok, said)
	for path, where := range map[string]string{bin: bin, bin + "/sub": bin, link: link, link + "/sub": link} {
		requireInsecure(t, CheckPlace(path), where, "it belongs to user 65534")
	}
}

// A path may lead through as many links as the kernel follows.
func TestCheckPlaceBehindManyLinks(t *testing.T) {
	dir := env.ShortDir(t)
	link := func(n int) string { return filepath.Join(dir, strconv.Itoa(n)) }
	require.NoError(t, os.Mkdir(link(0), 0o700))
	for n := range maxLinks + 1 {
		require.NoError(t, os.Symlink(strconv.Itoa(n), link(n+1)))
	}
	require.NoError(t, CheckPlace(link(maxLinks)))
	_, err := os.Stat(link(maxLinks))
	require.NoError(t, err)
	requireInsecure(t, CheckPlace(link(maxLinks+1)), link(maxLinks+1), "too many symbolic links")
	_, err = os.Stat(link(maxLinks + 1))
	require.ErrorIs(t, err, syscall.ELOOP)
}
