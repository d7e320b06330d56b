//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openFlags: a FIFO in the place of a file cannot hold up an open.
const openFlags = syscall.O_NONBLOCK

// checkPrivate: the user's own, and closed to all others.
func checkPrivate(info fs.FileInfo, path string) error {
	if uid, ok := ownerOf(info); !ok || uid != os.Geteuid() {
		return &InsecureError{path, fmt.Sprintf("it belongs to user %d", uid), "remove it, or have its owner or root do so: rm -r " + quoteForShell(path)}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return &InsecureError{path, fmt.Sprintf("others may use it (mode %#o)", mode), "see what is in it, then close it: chmod go= " + quoteForShell(path)}
	}
	return nil
}

// checkAncestors: in none of these directories may another user put something
// in the place of what is there. path must be without links.
func checkAncestors(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("private directory: %w", err)
		}
		if err := checkAncestor(info, dir); err != nil {
			return err
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// checkAncestor: root's or the user's, and if others may write there, then as
// in /tmp, where what is there can only be moved by its owner.
func checkAncestor(info fs.FileInfo, dir string) error {
	uid, ok := ownerOf(info)
	if !ok || uid != 0 && uid != os.Geteuid() {
		return &InsecureError{dir, fmt.Sprintf("it belongs to user %d", uid), "set XDG_RUNTIME_DIR or TMPDIR to a directory of your own"}
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return &InsecureError{dir, fmt.Sprintf("others may exchange what is in it (mode %#o)", info.Mode().Perm()), "close it to others: chmod go-w " + quoteForShell(dir)}
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
