package realssh

import (
	"errors"
	"os"
	"os/exec"
)

// Become runs ssh with our standard streams, and returns its exit status: path and environ are
// Find's, args are those after its name. On Unix ssh takes this process's place instead.
func Become(path string, args, environ []string) (status int, err error) {
	cmd := exec.Command(path, args...)
	cmd.Env = environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	return 0, err
}
