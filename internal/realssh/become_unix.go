//go:build unix

package realssh

import (
	"os"
	"syscall"
)

// Become lets ssh take this process's place: path and environ are Find's, args are those after
// its name. Terminal, signals and exit status are then its own, and Become returns only if that
// fails. On Windows it runs ssh, and returns its exit status when it has ended.
func Become(path string, args, environ []string) (status int, err error) {
	return 0, &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{path}, args...), environ)}
}
