//go:build unix

package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// SocketPair returns two connected Unix sockets: ours, and one for another process to be
// started with. Both are close-on-exec.
func SocketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "socket pair")
	theirs = os.NewFile(uintptr(fds[1]), "socket pair")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// SendFile gives the process at the other end of a Unix socket its own descriptor of file,
// with one byte (SCM_RIGHTS; mm_send_fd in OpenSSH's monitor_fdpass.c). Both stay open here.
func SendFile(socket, file syscall.Conn) error {
	from, err := file.SyscallConn()
	if err != nil {
		return err
	}
	to, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var writeErr, sendErr error
	err = from.Control(func(fd uintptr) {
		rights := syscall.UnixRights(int(fd))
		writeErr = to.Write(func(socket uintptr) (isDone bool) {
			for {
				sendErr = syscall.Sendmsg(int(socket), []byte{0}, rights, nil, 0)
				if sendErr != syscall.EINTR {
					return sendErr != syscall.EAGAIN
				}
			}
		})
	})
	return errors.Join(err, writeErr, os.NewSyscallError("sendmsg", sendErr))
}

// ReceiveConn receives the descriptor of a connected socket, sent with one byte
// (mm_receive_fd in OpenSSH's monitor_fdpass.c). More than one descriptor is an error, and
// all are closed.
func ReceiveConn(from *net.UnixConn) (net.Conn, error) {
	const maxFDs = 4 // that there is room for, so that they can be closed
	control := make([]byte, syscall.CmsgSpace(maxFDs*4))
	n, size, _, _, err := from.ReadMsgUnix(make([]byte, 1), control)
	if err != nil || n != 1 {
		return nil, errors.Join(errors.New("it did not hand over a connection"), err)
	}
	messages, err := syscall.ParseSocketControlMessage(control[:size])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, _ := syscall.ParseUnixRights(&m)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if len(files) != 1 {
		return nil, fmt.Errorf("it handed over %d descriptors, not one", len(files))
	}
	return net.FileConn(files[0])
}
