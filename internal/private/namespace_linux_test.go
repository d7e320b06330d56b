package private

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestIsMapped(t *testing.T) {
	for _, c := range []struct {
		uidMap string
		want   bool
	}{
		{"         0          0 4294967295\n", true},
		{"0 1000 1\n", false},
		{"0 1000 1\n1 100000 65536\n", true},
		{"0 1000 1\n1 100000 65533\n", false},
		{"65534 1000 1\n", true},
		{"", true},
		{"0 1000\n", true},
		{"nonsense\n", true},
	} {
		require.Equal(t, c.want, isMapped(c.uidMap, 65534), c.uidMap)
	}
	require.False(t, isUnmapped(os.Geteuid()))
}

// namespaceDir is the environment variable with which TestUserNamespace runs inside a user
// namespace.
const namespaceDir = "GPG_BRIDGE_TEST_NAMESPACE"

// In a user namespace that has no other user, what is root's belongs to "nobody", and so
// does what is a neighbour's.
func TestUserNamespace(t *testing.T) {
	if dir := os.Getenv(namespaceDir); dir != "" {
		insideNamespace(t, dir)
		return
	}
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: no other user can be played")
	}
	const user, other = 12345, 12346
	top := rootsDir(t)
	for _, c := range []struct {
		name string
		mode os.FileMode
		uid  int
	}{
		{"own", 0o700, user},
		{"tmp", 0o777 | os.ModeSticky, 0},
		{"tmp/own", 0o700, user},
		{"tmp/other", 0o755, other},
		{"tmp/other/own", 0o700, user},
		{"group", 0o775, 0},
		{"group/own", 0o700, user},
		{"run", 0o755, 0},
		{"run/user", 0o755, 0},
		{"run/user/own", 0o700, user},
	} {
		path := filepath.Join(top, c.name)
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.Chown(path, c.uid, c.uid))
		require.NoError(t, os.Chmod(path, c.mode))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	code, err := os.ReadFile(self)
	require.NoError(t, err)
	copied := filepath.Join(top, "test")
	require.NoError(t, os.WriteFile(copied, code, 0o755))

	cmd := exec.Command(copied, "-test.run=^TestUserNamespace$", "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), namespaceDir+"="+top)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		Credential:  &syscall.Credential{NoSetGroups: true},
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestUserNamespace")
}

// rootsDir returns a directory below / that only root can have made, unlike one in /tmp.
func rootsDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "gb")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

func insideNamespace(t *testing.T, top string) {
	info, err := os.Stat("/")
	require.NoError(t, err)
	root, _ := ownerOf(info)
	require.True(t, isUnmapped(root), "/ belongs to %d", root)
	in := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"own/d", "tmp/d", "tmp/own/d", "run/user/own/d"} {
		d := open(t, in(name))
		require.NoError(t, d.Write("file", []byte("x")), name)
	}
	for path, where := range map[string]string{
		"tmp/other/own/d": "tmp/other",
		"group/own/d":     "group",
		"tmp/other":       "tmp/other",
	} {
		_, err := Open(in(path))
		var insecure *InsecureError
		require.ErrorAs(t, err, &insecure, path)
		require.Equal(t, in(where), insecure.Path)
	}
	t.Setenv("XDG_RUNTIME_DIR", in("run/user/own"))
	d, err := Runtime()
	require.NoError(t, err)
	require.Equal(t, in("run/user/own/gpg-bridge"), d.Path())
	require.NoError(t, d.Close())
}
