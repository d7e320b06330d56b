//go:build unix

package realssh

import (
	"os"
	"syscall"
)

// Become lets ssh at path take this process's place, with args after its name: terminal,
// signals and exit status are then its own. On Windows it runs ssh and returns its exit status
// when it has ended. It returns on Unix only if that fails.
func Become(path string, args []string) (status int, err error) {
	return 0, &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{"ssh"}, args...), os.Environ())}
}
