package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/ui"
)

// redirect sends messages to where -E or -y say. What is opened stays open until the process
// ends, which may say something last. A file that cannot be opened ends the program with 1, as
// it ends ssh (log_redirect_stderr_to in OpenSSH's log.c).
func redirect(user *ui.UI, line sshflags.Line) error {
	switch {
	case line.Has('E') && line.Has('y'):
		user.Show("Can't specify both -y and -E\n")
		return ui.Exit(ui.ExitConnection, nil)
	case line.Has('y'):
		log, err := openSyslog()
		if err != nil {
			return ui.Exit(ui.ExitConnection, err)
		}
		user.LogTo(log)
	case line.Has('E'):
		path := line.Last('E')
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			user.Show(fmt.Sprintf("Couldn't open logfile %s: %s\n", path, reason(err)))
			return ui.Exit(1, nil)
		}
		user.LogTo(file)
	}
	return nil
}

// reason is what strerror(3) would say.
func reason(err error) string {
	number, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := number.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
