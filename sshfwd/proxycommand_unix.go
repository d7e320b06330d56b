//go:build unix

package sshfwd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// fdpassExists: a socket can be handed from one process to another.
const fdpassExists = true

// shellCommand runs a command as ssh does: by the user's shell, which makes way
// for it. It stays in our process group, for the terminal's sake.
func shellCommand(command string) (*exec.Cmd, error) {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	return exec.Command(shell, "-c", "exec "+command), nil
}

// safeInCommand: OpenSSH's own rules suffice for a POSIX shell.
func safeInCommand(string) bool { return true }

func hangUp(p *os.Process) { _ = p.Signal(syscall.SIGHUP) }

// runProxyDialer has the command connect, hand over the socket and end
// (ssh_proxy_fdpass_connect in sshconnect.c).
func (c *Config) runProxyDialer(ctx context.Context, command string) (*route, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	p, err := c.startProxy(command, theirs, theirs)
	_ = theirs.Close()
	if err != nil {
		return nil, err
	}
	defer func() {
		hangUp(p.cmd.Process)
		p.end()
	}()
	_ = ours.SetDeadline(time.Now().Add(c.connectLimit()))
	stop := context.AfterFunc(ctx, func() { _ = ours.Close() })
	defer stop()
	conn, err := receiveConn(ours)
	if err != nil {
		return nil, err
	}
	c.awaitExit(ctx, p)
	return &route{Conn: conn}, nil
}

// awaitExit leaves the dialer the time to end by itself.
func (c *Config) awaitExit(ctx context.Context, p *proxyProcess) {
	timer := time.NewTimer(c.connectLimit())
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-ctx.Done():
	case <-timer.C:
	}
}

func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
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
	file := os.NewFile(uintptr(fds[0]), "proxy dialer")
	theirs = os.NewFile(uintptr(fds[1]), "proxy dialer")
	conn, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

// receiveConn gets one socket, sent with one byte (mm_receive_fd in OpenSSH's
// monitor_fdpass.c).
func receiveConn(from *net.UnixConn) (net.Conn, error) {
	const maxFDs = 4 // that we look at in order to close them
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
