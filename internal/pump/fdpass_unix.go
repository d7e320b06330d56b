//go:build unix

package pump

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// IsSocketPair reports whether in and out are one stream socket of the Unix
// domain. ssh's ProxyUseFdpass looks like that (ssh_proxy_fdpass_connect in
// OpenSSH's sshconnect.c), and so does a program that speaks SSH itself over
// such a pair, libssh among them.
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

// Talks waits until whoever has the other end says something, and reports false
// where it has gone instead.
func Talks(in *os.File) (talks bool) {
	_ = control(in, func(fd int) error {
		if err := poll(fd); err != nil {
			return err
		}
		n, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		talks = err == nil && n > 0
		return err
	})
	return talks
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

// Pass hands the connection to whoever has the other end of the socket (one
// byte and SCM_RIGHTS: mm_send_fd in OpenSSH's monitor_fdpass.c).
func Pass(socket *os.File, conn *net.TCPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Control(func(fd uintptr) {
		rights := unix.UnixRights(int(fd))
		sendErr = control(socket, func(to int) error {
			for {
				err := unix.Sendmsg(to, []byte{0}, rights, nil, 0)
				if !errors.Is(err, unix.EINTR) {
					return os.NewSyscallError("sendmsg", err)
				}
			}
		})
	})
	return errors.Join(err, sendErr)
}

// control calls use with the file's descriptor, and leaves its mode as it is.
func control(file *os.File, use func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var useErr error
	err = raw.Control(func(fd uintptr) { useErr = use(int(fd)) })
	return errors.Join(err, useErr)
}
