//go:build unix

package sshconfig

import (
	"os"
	"syscall"
)

func owner(info os.FileInfo) [2]uint32 {
	stat := info.Sys().(*syscall.Stat_t)
	return [2]uint32{stat.Uid, stat.Gid}
}
