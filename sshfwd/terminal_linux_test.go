package sshfwd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/sshtest"
	"gpg-bridge/internal/testenv"
)

var testSize = unix.Winsize{Col: 101, Row: 37, Xpixel: 1010, Ypixel: 740}

// openTerminal is a terminal of odd size and modes.
func openTerminal(t *testing.T) (*Terminal, *os.File) {
	t.Helper()
	master, slave, err := sshtest.OpenPTY()
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
	})
	fd := int(slave.Fd())
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &testSize))
	termios, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	require.NoError(t, err)
	termios.Cc[unix.VINTR] = 'X' - '@'
	termios.Cc[unix.VEOL2] = posixVDisable
	termios.Iflag |= unix.IUTF8
	termios.Iflag &^= unix.IXON
	termios.Cflag = termios.Cflag&^unix.CBAUD | unix.B9600
	require.NoError(t, unix.IoctlSetTermios(fd, unix.TCSETS, termios))
	terminal, ok := OpenTerminal(slave, slave)
	require.True(t, ok)
	return terminal, slave
}

func TestOpenTerminalOfAFile(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	_, ok := OpenTerminal(file, file)
	require.False(t, ok)
	_, ok = OpenTerminal(nil, nil)
	require.False(t, ok)
}

func TestTerminalRawAndBack(t *testing.T) {
	terminal, slave := openTerminal(t)
	modes := func() *unix.Termios {
		termios, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		require.NoError(t, err)
		return termios
	}
	before := modes()
	restore, err := terminal.MakeRaw()
	require.NoError(t, err)
	require.Zero(t, modes().Lflag&(unix.ECHO|unix.ICANON|unix.ISIG))
	require.NoError(t, restore())
	require.Equal(t, before, modes())
	again, err := terminal.MakeRaw()
	require.NoError(t, err)
	require.NoError(t, restore(), "the second call of the first restore")
	require.NotEqual(t, before, modes(), "does nothing")
	require.NoError(t, again())
}

func TestTerminalResizes(t *testing.T) {
	terminal, slave := openTerminal(t)
	sizes, stop := terminal.Resizes()
	defer stop()
	for _, cols := range []uint16{90, 91} {
		require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: cols, Row: 20, Xpixel: 5, Ypixel: 6}))
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGWINCH))
		require.Equal(t, WindowSize{Cols: uint32(cols), Rows: 20, XPixels: 5, YPixels: 6}, <-sizes)
	}
	stop()
	stop()
}

// What is typed after Close belongs to somebody else.
func TestTerminalInputEndsWithoutAKey(t *testing.T) {
	master, slave, err := sshtest.OpenPTY()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	terminal, ok := OpenTerminal(slave, slave)
	require.True(t, ok)
	restore, err := terminal.MakeRaw()
	require.NoError(t, err)
	defer func() { _ = restore() }()
	input := terminal.Input()
	_, err = master.WriteString("a")
	require.NoError(t, err)
	key := make([]byte, 1)
	n, err := input.Read(key)
	require.NoError(t, err)
	require.Equal(t, "a", string(key[:n]))
	ended := make(chan error, 1)
	go func() {
		_, err := input.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, input.Close())
	require.ErrorIs(t, <-ended, io.EOF)
	_, err = input.Read(key)
	require.ErrorIs(t, err, io.EOF, "again")
	require.NoError(t, input.Close())
	_, err = master.WriteString("b")
	require.NoError(t, err)
	n, err = slave.Read(key)
	require.NoError(t, err)
	require.Equal(t, "b", string(key[:n]))
}

func TestOfferSizeKeepsTheNewest(t *testing.T) {
	sizes := make(chan WindowSize, 1)
	for cols := range uint32(3) {
		offerSize(sizes, WindowSize{Cols: cols})
	}
	require.Equal(t, uint32(2), (<-sizes).Cols)
}

// The real ssh, on the same terminal, asks for the same.
func TestTerminalAsksForWhatSSHAsks(t *testing.T) {
	program := testenv.Tool(t, "ssh")
	terminal, slave := openTerminal(t)
	asked := make(chan []byte, 1)
	srv := &sshtest.Server{ChannelHandlers: map[string]sshtest.ChannelHandler{
		"session": func(_ *sshtest.Conn, newCh ssh.NewChannel) {
			ch, reqs, err := newCh.Accept()
			if err != nil {
				return
			}
			for req := range reqs {
				if req.Type == "pty-req" {
					asked <- req.Payload
				}
				_ = req.Reply(req.Type != "shell", nil)
			}
			_ = ch.Close()
		},
	}}
	ours := ptyRequest(terminal.PTY("xterm-256color"))
	cmd := exec.Command(program, sshArgs(t, srv)...)
	cmd.Stdin = slave
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	require.Equal(t, decodePTY(t, <-asked), decodePTY(t, ours))
}

// sshArgs starts srv and returns the arguments with which ssh logs in there.
func sshArgs(t *testing.T, srv *sshtest.Server) []string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	srv.AuthorizedKeys = append(srv.AuthorizedKeys, signer.PublicKey())
	sshtest.Start(t, srv)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	host, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	return []string{
		"-F", "none", "-tt", "-i", file, "-p", port, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "tester@" + host,
	}
}

type decodedPTY struct {
	Term                         string
	Cols, Rows, XPixels, YPixels uint32
	modes                        map[byte]uint32
}

func decodePTY(t *testing.T, payload []byte) decodedPTY {
	t.Helper()
	var request struct {
		Term                         string
		Cols, Rows, XPixels, YPixels uint32
		Modes                        string
	}
	require.NoError(t, ssh.Unmarshal(payload, &request))
	modes := make(map[byte]uint32)
	for rest := []byte(request.Modes); len(rest) > 1; rest = rest[5:] {
		modes[rest[0]] = uint32(rest[1])<<24 | uint32(rest[2])<<16 | uint32(rest[3])<<8 | uint32(rest[4])
	}
	return decodedPTY{request.Term, request.Cols, request.Rows, request.XPixels, request.YPixels, modes}
}
