//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// makeLike sets the file's owner, group and mode to another's, in that order: chown(2) may
// clear bits of the mode. Only root may give it a group that is not one of the user's: else
// the file keeps the user's own, for which its mode then allows nothing.
func makeLike(file *os.File, like fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, want := info.Sys().(*syscall.Stat_t), like.Sys().(*syscall.Stat_t)
	mode := like.Mode().Perm()
	if is.Uid != want.Uid || is.Gid != want.Gid {
		err = file.Chown(int(want.Uid), int(want.Gid))
		if errors.Is(err, fs.ErrPermission) && is.Uid == want.Uid {
			mode, err = withoutGroup(mode), nil
		}
		if err != nil {
			return err
		}
	}
	return file.Chmod(mode)
}

// withoutGroup is a mode for another group, no wider for anybody: those of the former group are
// among the others now.
func withoutGroup(mode fs.FileMode) fs.FileMode {
	return mode&0o700 | mode&0o007&(mode>>3)
}
