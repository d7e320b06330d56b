//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gpg-bridge/internal/usertext"
)

// openFlags keep an open from blocking at a FIFO that is there instead of a file.
const openFlags = syscall.O_NONBLOCK

// checkPrivate returns an *InsecureError unless the file is the user's own and closed to
// all others.
func checkPrivate(info fs.FileInfo, path string) error {
	if uid, ok := ownerOf(info); !ok || uid != os.Geteuid() {
		return &InsecureError{path, fmt.Sprintf("it belongs to user %d", uid), "remove it, or have its owner or root do so: rm -r " + usertext.ShellWord(path)}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return &InsecureError{path, fmt.Sprintf("others may use it (mode %#o)", mode), "see what is in it, then close it: chmod go= " + usertext.ShellWord(path)}
	}
	return nil
}

// checkAncestors returns an *InsecureError if another user could replace what is in the
// directory at path, or in one above it. path must be without links.
func checkAncestors(path string) error {
	above, err := os.Lstat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("private directory: %w", err)
	}
	if path != filepath.Dir(path) {
		if err := checkAncestors(filepath.Dir(path)); err != nil {
			return err
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("private directory: %w", err)
	}
	return checkAncestor(info, above, path)
}

// checkAncestor checks one directory. It must belong to root or the user, and if others
// may write there, it must be like /tmp, where only the owner of a file can move it.
//
// In a user namespace root may have no number: what is root's then shows the same owner as
// what is other users'. Such a directory is accepted if only its parent's owner can have
// put it there. From / downwards that is root, and in the end somebody to whom root gave a
// directory, and who let the user have one in it.
func checkAncestor(info, above fs.FileInfo, dir string) error {
	uid, ok := ownerOf(info)
	isRoots := uid == 0 || above.Mode().Perm()&0o022 == 0 && isUnmapped(uid)
	if !ok || !isRoots && uid != os.Geteuid() {
		return &InsecureError{dir, fmt.Sprintf("it belongs to user %d", uid), "set XDG_RUNTIME_DIR or TMPDIR to a directory of your own"}
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return &InsecureError{dir, fmt.Sprintf("others may exchange what is in it (mode %#o)", info.Mode().Perm()), "close it to others: chmod go-w " + usertext.ShellWord(dir)}
	}
	return nil
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(stat.Uid), true
}
