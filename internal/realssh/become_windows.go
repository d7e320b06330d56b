package realssh

import (
	"errors"
	"os"
	"os/exec"
)

// Become runs ssh at path with args and our standard streams, and returns its exit status. On
// Unix ssh takes this process's place instead.
func Become(path string, args []string) (status int, err error) {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	return 0, err
}
