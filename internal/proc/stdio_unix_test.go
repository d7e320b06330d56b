//go:build unix

package proc

import (
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

func expect(t *testing.T, from io.Reader, want string) {
	t.Helper()
	data := make([]byte, len(want))
	_, err := io.ReadFull(from, data)
	require.NoError(t, err)
	require.Equal(t, want, string(data))
}

func socketPair(t *testing.T, kind int) (a, b *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, kind, 0)
	require.NoError(t, err)
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func TestIsSocketPair(t *testing.T) {
	a, b := socketPair(t, syscall.SOCK_STREAM)
	fd, err := syscall.Dup(int(a.Fd()))
	require.NoError(t, err)
	again := os.NewFile(uintptr(fd), "again")
	defer again.Close()
	require.True(t, IsSocketPair(a, again))
	require.False(t, IsSocketPair(a, b), "two sockets, as node's child processes have")
	d, _ := socketPair(t, syscall.SOCK_DGRAM)
	require.False(t, IsSocketPair(d, d))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.False(t, IsSocketPair(r, w))
	require.False(t, IsSocketPair(r, r))
}

func TestSendFile(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	host, err := listener.Accept()
	require.NoError(t, err)
	defer host.Close()

	a, b := socketPair(t, syscall.SOCK_STREAM)
	require.NoError(t, SendFile(a, conn.(*net.TCPConn)))
	require.NoError(t, conn.Close())

	control := make([]byte, syscall.CmsgSpace(4))
	n, size, _, _, err := syscall.Recvmsg(int(b.Fd()), make([]byte, 2), control, 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	messages, err := syscall.ParseSocketControlMessage(control[:size])
	require.NoError(t, err)
	fds, err := syscall.ParseUnixRights(&messages[0])
	require.NoError(t, err)
	require.Len(t, fds, 1)
	passed := os.NewFile(uintptr(fds[0]), "passed")
	defer passed.Close()
	_, err = passed.WriteString("hello")
	require.NoError(t, err)
	require.NoError(t, host.SetDeadline(time.Now().Add(patience)))
	expect(t, host, "hello")
}

func TestAwaitInput(t *testing.T) {
	a, b := socketPair(t, syscall.SOCK_STREAM)
	answer := make(chan bool, 1)
	go func() { answer <- AwaitInput(a) }()
	_, err := b.WriteString("SSH-2.0-libssh\r\n")
	require.NoError(t, err)
	require.True(t, <-answer)
	expect(t, a, "SSH-2.0-libssh\r\n")
	go func() { answer <- AwaitInput(a) }()
	require.NoError(t, b.Close())
	require.False(t, <-answer)
}
