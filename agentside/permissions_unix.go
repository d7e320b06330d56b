//go:build unix

package agentside

import (
	"io/fs"
	"os"
	"syscall"
)

// openFlags make that a FIFO in the place of a file cannot block the open.
const openFlags = syscall.O_NONBLOCK

var (
	errForeignFile error = &hintedError{
		text: "the file with the agent's secret belongs to another user",
		hint: "run gpg-bridge as the user whose agent it is",
	}
	errOpenFile error = &hintedError{
		text: "the file with the agent's secret can be read or written by others",
		hint: "make it yours alone (chmod 600), then restart the agent, because its secret may be known",
	}
)

// checkSecret refuses a file with a nonce that was written by, or may be known
// to, somebody else: the one could lead us to his own agent, the other use
// ours.
func checkSecret(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Geteuid() {
		return errForeignFile
	}
	if info.Mode().Perm()&0o066 != 0 {
		return errOpenFile
	}
	return nil
}
