package atomicfile

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A file whose group is none of the user's is replaced, and then readable to nobody who could
// not read it before.
func TestReplaceOfAForeignGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: nobody else can be played")
	}
	const user, group = 65534, 12345
	dir := env.ShortDir(t)
	require.NoError(t, os.Chown(dir, user, user))
	for was, want := range map[os.FileMode]os.FileMode{0o640: 0o600, 0o644: 0o604, 0o604: 0o600, 0o600: 0o600} {
		file := filepath.Join(dir, was.String())
		require.NoError(t, os.WriteFile(file, []byte("old"), was))
		require.NoError(t, os.Chown(file, user, group))
		require.NoError(t, os.Chmod(file, was))
		like, err := os.Stat(file)
		require.NoError(t, err)
		as(t, user, func() {
			assert.NoError(t, Replace(file, []byte("new"), like, func() error { return nil }))
		})
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "new", string(data))
		is, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, want, is.Mode().Perm(), was)
		require.Equal(t, [2]uint32{user, user}, [2]uint32{is.Sys().(*syscall.Stat_t).Uid, is.Sys().(*syscall.Stat_t).Gid})
	}
}

// as runs a function on a thread of its own, which belongs to another user with one group and
// ends with it: credentials(7) are a thread's, for the kernel.
func as(t *testing.T, id uintptr, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		for _, call := range [][4]uintptr{
			{syscall.SYS_SETGROUPS}, {syscall.SYS_SETRESGID, id, id, id}, {syscall.SYS_SETRESUID, id, id, id},
		} {
			if _, _, failed := syscall.RawSyscall(call[0], call[1], call[2], call[3]); !assert.Zero(t, failed) {
				return
			}
		}
		do()
	}()
	<-done
}
