package terminal

import (
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// VDisable is _POSIX_VDISABLE, the value of a control character that is not set.
const VDisable = 0xff

// GetTermios returns a terminal's modes.
func GetTermios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TIOCGETA) }

// SetTermiosAndFlush sets a terminal's modes, and drops what was typed and not read.
func SetTermiosAndFlush(fd int, termios *unix.Termios) error {
	return unix.IoctlSetTermios(fd, unix.TIOCSETAF, termios)
}

func setTermios(fd int, termios *unix.Termios) error {
	return unix.IoctlSetTermios(fd, unix.TIOCSETA, termios)
}

func systemChars() []ttyChar {
	return []ttyChar{{ssh.VDSUSP, unix.VDSUSP}, {ssh.VSTATUS, unix.VSTATUS}}
}

// suspendChars are the indices in c_cc of the keys that suspend.
func suspendChars() []int { return []int{unix.VSUSP, unix.VDSUSP} }

func systemInputFlags() []ttyFlag { return []ttyFlag{{ssh.IUTF8, unix.IUTF8}} }

func systemLocalFlags() []ttyFlag { return nil }

func systemOutputFlags() []ttyFlag { return nil }

func lineSpeeds(t *unix.Termios) (input, output uint32) {
	return uint32(t.Ispeed), uint32(t.Ospeed)
}
