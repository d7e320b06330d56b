//go:build unix

package proc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// IsSocketPair reports whether our standard input and output, in and out, are the same Unix
// stream socket. They are if ssh starts us as its ProxyCommand with ProxyUseFdpass
// (ssh_proxy_fdpass_connect in OpenSSH's sshconnect.c), but also if a program speaks SSH
// itself over such a pair, as libssh does.
func IsSocketPair(in, out *os.File) bool {
	a, aErr := in.Stat()
	b, bErr := out.Stat()
	if aErr != nil || bErr != nil || a.Mode()&os.ModeSocket == 0 || !os.SameFile(a, b) {
		return false
	}
	is := false
	_ = control(out, func(fd int) error {
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err != nil {
			return err
		}
		name, err := unix.Getsockname(fd)
		_, isUnix := name.(*unix.SockaddrUnix)
		is = isUnix && kind == unix.SOCK_STREAM
		return err
	})
	return is
}

// AwaitInput waits until the other end of in has sent something, and returns false if it is
// closed instead. It reads nothing.
func AwaitInput(in *os.File) (isThere bool) {
	_ = control(in, func(fd int) error {
		if err := poll(fd); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		isThere = err == nil && n > 0
		return err
	})
	return isThere
}

// poll waits for something to read, or for the end.
func poll(fd int) error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// control calls use with the file's descriptor, without changing its mode as File.Fd does.
func control(file *os.File, use func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var useErr error
	err = raw.Control(func(fd uintptr) { useErr = use(int(fd)) })
	return errors.Join(err, useErr)
}
