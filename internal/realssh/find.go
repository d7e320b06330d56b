package realssh

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Find returns the path of the user's own ssh. On Windows it prefers the system's to the one
// that Git brings along, which uses MSYS paths. The error wraps [exec.ErrNotFound] where there
// is none.
func Find() (string, error) {
	if root := os.Getenv("SystemRoot"); runtime.GOOS == "windows" && root != "" {
		system := filepath.Join(root, "System32", "OpenSSH", "ssh.exe")
		if _, err := os.Stat(system); err == nil {
			return system, nil
		}
	}
	return exec.LookPath("ssh")
}
