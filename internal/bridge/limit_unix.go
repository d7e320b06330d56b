//go:build unix

package bridge

import "golang.org/x/sys/unix"

// sessionLimit returns how many sessions the process's descriptors allow: each
// has one, its connection to the agent, and a quarter is left for all else. The
// Go runtime has raised the soft limit to the hard one at start.
func sessionLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return perBridge
	}
	return sessionsWith(uint64(limit.Cur))
}

func sessionsWith(descriptors uint64) int {
	return max(1, int(min(descriptors/4*3, perBridge)))
}
