package fakesshd

import (
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A pty is a pseudo-terminal: the master is ours, the slave the process's.
type pty struct {
	master, slave *os.File
	once          sync.Once
}

// OpenPTY allocates a pseudo-terminal for a test that needs one of its own. The
// caller closes both.
func OpenPTY() (master, slave *os.File, err error) {
	p, err := openPTY()
	if err != nil {
		return nil, nil, err
	}
	return p.master, p.slave, nil
}

// OddPTY returns the slave of a pseudo-terminal with a size and modes that no terminal has by
// default. It is closed when the test ends.
func OddPTY(t testing.TB) (slave *os.File) {
	t.Helper()
	master, slave, err := OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = slave.Close(), master.Close() })
	fd := int(slave.Fd())
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 101, Row: 37, Xpixel: 1010, Ypixel: 740}); err != nil {
		t.Fatal(err)
	}
	termios, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	const disabled = 0 // _POSIX_VDISABLE
	termios.Cc[unix.VINTR], termios.Cc[unix.VEOL2] = 'X'-'@', disabled
	termios.Iflag |= unix.IUTF8
	termios.Iflag &^= unix.IXON
	termios.Cflag = termios.Cflag&^unix.CBAUD | unix.B9600
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, termios); err != nil {
		t.Fatal(err)
	}
	return slave
}

// openPTY allocates a pseudo-terminal (pty(7), ioctl_tty(2)).
func openPTY() (*pty, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	slave, err := openSlave(master)
	if err != nil {
		_ = master.Close()
		return nil, err
	}
	return &pty{master: master, slave: slave}, nil
}

func openSlave(master *os.File) (*os.File, error) {
	conn, err := master.SyscallConn()
	if err != nil {
		return nil, err
	}
	var number int
	var ioctlErr error
	err = conn.Control(func(fd uintptr) {
		if ioctlErr = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); ioctlErr != nil {
			return
		}
		number, ioctlErr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err != nil {
		return nil, err
	}
	if ioctlErr != nil {
		return nil, ioctlErr
	}
	return os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
}

func (p *pty) resize(size windowPayload) error {
	conn, err := p.master.SyscallConn()
	if err != nil {
		return err
	}
	winsize := unix.Winsize{
		Col: uint16(size.Cols), Row: uint16(size.Rows),
		Xpixel: uint16(size.XPixels), Ypixel: uint16(size.YPixels),
	}
	var ioctlErr error
	if err := conn.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &winsize)
	}); err != nil {
		return err
	}
	return ioctlErr
}

// close hangs up what still runs on the terminal.
func (p *pty) close() {
	p.once.Do(func() {
		_ = p.slave.Close()
		_ = p.master.Close()
	})
}
