package realssh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// own stands for this program: it answers as `gpg-bridge ssh -V` does.
const own = "#!/bin/sh\n[ \"$GPG_BRIDGE_SSH\" != \"?\" ] || printf '" + Answer + "'\n"

// put makes an executable file ssh in a directory of its own, which it returns.
func put(t *testing.T, text string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o755))
	return dir
}

// find calls Find with these directories in PATH, and those of the shell.
func find(t *testing.T, dirs ...string) (path, variable string, err error) {
	t.Helper()
	t.Setenv("PATH", strings.Join(dirs, ":"))
	path, environ, err := Find(t.Context())
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, "GPG_BRIDGE_SSH="); ok {
			require.Empty(t, variable)
			variable = value
		}
	}
	return path, variable, err
}

// This program under ssh's name is passed over, as a link and as a script, and so is what is
// no program.
func TestFindPassesThisProgramOver(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	link, note := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(program, filepath.Join(link, "ssh")))
	require.NoError(t, os.WriteFile(filepath.Join(note, "ssh"), []byte("not executable"), 0o644))
	theirs := put(t, "#!/bin/sh\necho OpenSSH >&2\n")
	inner := put(t, own)
	outer := put(t, "#!/bin/sh\nexec "+inner+"/ssh \"$@\"\n") // a script that runs a script
	for _, before := range [][]string{{}, {link}, {inner}, {outer}, {inner, outer}, {note, link, inner, link}, {"relative", "", "/nonexistent"}} {
		path, variable, err := find(t, append(before, theirs, inner)...)
		require.NoError(t, err)
		require.Equal(t, theirs+"/ssh", path, before)
		require.Equal(t, "1:"+theirs+"/ssh", variable)
	}
	_, _, err = find(t, inner, link)
	require.ErrorIs(t, err, exec.ErrNotFound)
}

// A program that is no script is not asked, unless this program runs below an ssh that it has
// run: then it may be one that runs this program. What answers nothing true ends in an error.
func TestFindBelowAnSSH(t *testing.T) {
	wrapper := put(t, strings.TrimPrefix(own, "#!/bin/sh\n")) // which the kernel cannot run, but Find could not know
	theirs := put(t, "#!/bin/sh\n")
	path, _, err := find(t, wrapper, theirs)
	require.NoError(t, err)
	require.Equal(t, wrapper+"/ssh", path)

	t.Setenv(variable, "3")
	path, above, err := find(t, theirs)
	require.NoError(t, err)
	require.Equal(t, [2]string{theirs + "/ssh", "4:" + theirs + "/ssh"}, [2]string{path, above})

	t.Setenv(variable, "16")
	_, _, err = find(t, theirs)
	var loop *LoopError
	require.ErrorAs(t, err, &loop)
	require.NotEmpty(t, loop.Hint())
}

func TestWithout(t *testing.T) {
	require.Equal(t, []string{"A=1", "GPG_BRIDGE=off"}, Without([]string{"A=1", variable + "=2", "GPG_BRIDGE=off"}))
}
