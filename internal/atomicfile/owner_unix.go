//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// makeLike sets the file's owner, group and mode to another's, in that order: chown(2) may
// clear bits of the mode.
func makeLike(file *os.File, like fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, want := info.Sys().(*syscall.Stat_t), like.Sys().(*syscall.Stat_t)
	if is.Uid != want.Uid || is.Gid != want.Gid {
		if err := file.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return err
		}
	}
	return file.Chmod(like.Mode().Perm())
}
