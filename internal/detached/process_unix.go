//go:build unix

package detached

import "syscall"

// waysApart are the ways to start a process apart from this one, the best first. In a
// session of its own it does not get the signals of our terminal, nor its hangup.
func waysApart() []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{{Setsid: true}}
}

// isForbidden reports whether a start failed because of the way it was made.
func isForbidden(error) bool { return false }
