//go:build unix

package main

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// dialAsGPG connects as libassuan does, with a blocking socket: while the listener's backlog is
// full, its connect waits, where that of package net fails with EAGAIN (unix(7)).
func dialAsGPG(path string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	unix.CloseOnExec(fd)
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}
