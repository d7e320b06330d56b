package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// The path that is written is the one that stays when the program is replaced.
func TestStablePath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("package managers make no symbolic links there")
	}
	dir := env.ShortDir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, sub := range []string{"Cellar/1.2.3/bin", "bin", "go/bin", "other"} {
		require.NoError(t, os.MkdirAll(in(sub), 0o755))
	}
	self := in("Cellar/1.2.3/bin/gpg-bridge")
	require.NoError(t, os.WriteFile(self, nil, 0o755))
	require.NoError(t, os.WriteFile(in("other/gpg-bridge"), nil, 0o755))
	require.NoError(t, os.Symlink("../Cellar/1.2.3/bin/gpg-bridge", in("bin/gpg-bridge")))
	require.NoError(t, os.Symlink(self, in("bin/gb")))
	require.NoError(t, os.Link(self, in("go/bin/gpg-bridge")))
	shared := env.ShortDir(t)
	require.NoError(t, os.Chmod(shared, 0o777|os.ModeSticky))
	require.NoError(t, os.Mkdir(filepath.Join(shared, "bin"), 0o777))
	require.NoError(t, os.Chmod(filepath.Join(shared, "bin"), 0o777))
	require.NoError(t, os.Symlink(self, filepath.Join(shared, "bin", "gpg-bridge")))
	t.Chdir(dir)

	versions := in("Cellar/1.2.3/bin")
	for _, c := range []struct{ called, path, want string }{
		{"gpg-bridge", in("bin"), in("bin/gpg-bridge")},
		{"gpg-bridge", in("other") + ":" + in("bin"), in("bin/gpg-bridge")},
		{self, versions + ":" + in("bin"), in("bin/gpg-bridge")},
		{in("bin/gpg-bridge"), "/usr/bin", in("bin/gpg-bridge")},
		{"bin/gpg-bridge", "/usr/bin", in("bin/gpg-bridge")},
		{"bin/gpg-bridge", "bin:", in("bin/gpg-bridge")},
		{"gb", in("bin"), in("bin/gpg-bridge")},
		{in("bin/gb"), "", in("bin/gb")},
		{"gpg-bridge", in("go/bin"), in("go/bin/gpg-bridge")},
		{"gpg-bridge", filepath.Join(shared, "bin") + ":" + in("bin"), in("bin/gpg-bridge")},
		{"gpg-bridge", filepath.Join(shared, "bin"), self},
		{"gpg-bridge", "bin:/usr/bin", self},
	} {
		require.Equal(t, c.want, stablePath(self, c.called, c.path), "%+v", c)
	}
}
