//go:build !unix

package bridge

import "gpg-bridge/remoteside"

// sessionLimit is the general limit: descriptors do not limit sockets here.
func sessionLimit() int { return remoteside.MaxSessions }
