//go:build !unix

package bridge

// sessionLimit: sockets are not bounded by descriptors here.
func sessionLimit() int { return perBridge }
