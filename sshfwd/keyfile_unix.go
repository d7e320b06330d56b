//go:build unix

package sshfwd

import (
	"io/fs"
	"os"
	"syscall"
)

// tooOpen: our own file, and others can read it. A file of another owner is
// that owner's matter (sshkey_perm_ok in OpenSSH's authfile.c).
func tooOpen(info fs.FileInfo) bool { return isOwn(info) && info.Mode().Perm()&0o077 != 0 }

func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
