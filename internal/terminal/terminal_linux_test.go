package terminal

import (
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gpg-bridge/internal/testkit/fakesshd"
)

// openTerminal opens a terminal with an unusual size and modes.
func openTerminal(t *testing.T) (*Terminal, *os.File) {
	t.Helper()
	slave := fakesshd.OddPTY(t)
	terminal, ok := Open(slave, slave)
	require.True(t, ok)
	return terminal, slave
}

func TestOpenOfAFile(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	_, ok := Open(file, file)
	require.False(t, ok)
	_, ok = Open(nil, nil)
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
	require.Zero(t, modes().Cc[unix.VSUSP], "no key stops us, whoever sets ISIG")
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

// What is typed after Close is left for somebody else.
func TestTerminalInputEndsWithoutAKey(t *testing.T) {
	master, slave, err := fakesshd.OpenPTY()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	terminal, ok := Open(slave, slave)
	require.True(t, ok)
	restore, err := terminal.MakeRaw()
	require.NoError(t, err)
	defer func() { _ = restore() }()
	input := terminal.Input(nil)
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

func TestReplaceSizeKeepsTheNewest(t *testing.T) {
	sizes := make(chan WindowSize, 1)
	for cols := range uint32(3) {
		replaceSize(sizes, WindowSize{Cols: cols})
	}
	require.Equal(t, uint32(2), (<-sizes).Cols)
}
