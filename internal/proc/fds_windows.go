package proc

import (
	"errors"
	"syscall"
)

// SendFile returns errors.ErrUnsupported: OpenSSH on Windows does not pass descriptors.
func SendFile(_, _ syscall.Conn) error { return errors.ErrUnsupported }
