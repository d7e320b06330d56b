//go:build unix

package login

import (
	"io/fs"
	"os"
	"syscall"
)

// tooOpen reports whether a file of ours can be read by others. The mode of another
// owner's file is not checked (sshkey_perm_ok in OpenSSH's authfile.c).
func tooOpen(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 != 0
}
