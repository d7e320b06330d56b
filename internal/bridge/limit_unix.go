//go:build unix

package bridge

import (
	"golang.org/x/sys/unix"

	"gpg-bridge/remoteside"
)

// sessionLimit returns how many sessions the process's descriptors allow: each needs one, for
// its connection to the agent, and a quarter is kept for everything else. The Go runtime has
// raised the soft limit to the hard one at start.
func sessionLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return remoteside.MaxSessions
	}
	return sessionsWith(uint64(limit.Cur))
}

func sessionsWith(descriptors uint64) int {
	return max(1, int(min(descriptors/4*3, remoteside.MaxSessions)))
}
