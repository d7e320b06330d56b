//go:build unix

package agentside

import (
	"errors"
	"syscall"
)

// refused reports whether nobody listens at a socket or port that exists.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// gpgconfDirs lists where to look after PATH, which lacks some directories in
// programs that a desktop has started: those of Homebrew, MacPorts and GPG Suite.
func gpgconfDirs() []string {
	return []string{"/usr/local/bin", "/usr/bin", "/opt/homebrew/bin", "/opt/local/bin", "/usr/local/MacGPG2/bin"}
}
