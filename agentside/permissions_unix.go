//go:build unix

package agentside

import (
	"io/fs"
	"os"
	"syscall"

	"gpg-bridge/internal/private"
	"gpg-bridge/internal/usertext"
)

// openFlags keep the open from blocking if the file has become a FIFO.
const openFlags = syscall.O_NONBLOCK

var (
	errForeignFile = usertext.WithHint(
		"the file with the agent's secret belongs to another user",
		"run gpg-bridge as the user whose agent it is",
	)
	errOpenFile = usertext.WithHint(
		"the file with the agent's secret can be read or written by others",
		"make it yours alone (chmod 600), then restart the agent, because its secret may be known",
	)
)

// checkSecret refuses a file with a nonce if somebody else has written it, who could
// lead us to their own agent, or can read it, and so could use ours.
func checkSecret(f *os.File, info fs.FileInfo) error {
	return judgeSecret(isOwn(info), info.Mode().Perm(), func() bool { return private.ModeSaysNothing(f) })
}

// isOwn reports whether the file is this user's.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}

// judgeSecret decides by the file's owner and mode. saysNothing reports whether the mode
// means nothing on this file system; it is called only if the mode is too open.
func judgeSecret(own bool, mode fs.FileMode, saysNothing func() bool) error {
	switch {
	case !own:
		return errForeignFile
	case mode&0o066 != 0 && !saysNothing():
		return errOpenFile
	}
	return nil
}
