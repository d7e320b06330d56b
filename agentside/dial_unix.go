//go:build unix

package agentside

import (
	"errors"
	"syscall"
)

// refused reports that there is a socket or a port and nobody listens.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// gpgconfDirs lists where to look beside PATH, which is short for programs
// that a desktop starts: macOS's Homebrew, MacPorts and GPG Suite.
func gpgconfDirs() []string {
	return []string{"/usr/local/bin", "/usr/bin", "/opt/homebrew/bin", "/opt/local/bin", "/usr/local/MacGPG2/bin"}
}
