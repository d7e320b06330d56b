package terminal

import (
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// VDisable is _POSIX_VDISABLE, the value of a control character that is not set.
const VDisable = 0

// fallbackSpeed is sent for a line speed that speedOf does not know, in bits per second.
const fallbackSpeed = 38400

// GetTermios returns a terminal's modes.
func GetTermios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) }

// SetTermiosAndFlush sets a terminal's modes, and drops what was typed and not read.
func SetTermiosAndFlush(fd int, termios *unix.Termios) error {
	return unix.IoctlSetTermios(fd, unix.TCSETSF, termios)
}

func setTermios(fd int, termios *unix.Termios) error {
	return unix.IoctlSetTermios(fd, unix.TCSETS, termios)
}

func systemChars() []ttyChar { return nil }

// suspendChars are the indices in c_cc of the keys that suspend.
func suspendChars() []int { return []int{unix.VSUSP} }

func systemInputFlags() []ttyFlag { return []ttyFlag{{ssh.IUCLC, unix.IUCLC}, {ssh.IUTF8, unix.IUTF8}} }

func systemLocalFlags() []ttyFlag { return []ttyFlag{{ssh.XCASE, unix.XCASE}} }

func systemOutputFlags() []ttyFlag { return []ttyFlag{{ssh.OLCUC, unix.OLCUC}} }

// lineSpeeds reads the speed from c_cflag: TCGETS does not fill in the fields
// for numbers.
func lineSpeeds(t *unix.Termios) (input, output uint32) {
	output = speedOf(t.Cflag & unix.CBAUD)
	return output, output
}

func speedOf(code uint32) uint32 {
	switch code {
	case unix.B0:
		return 0
	case unix.B300:
		return 300
	case unix.B1200:
		return 1200
	case unix.B2400:
		return 2400
	case unix.B4800:
		return 4800
	case unix.B9600:
		return 9600
	case unix.B19200:
		return 19200
	case unix.B57600:
		return 57600
	case unix.B115200:
		return 115200
	case unix.B230400:
		return 230400
	}
	return fallbackSpeed
}
