package sshfwd

import "golang.org/x/sys/unix"

// posixVDisable is _POSIX_VDISABLE: this control character is not set.
const posixVDisable = 0xff

func getTermios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TIOCGETA) }

func systemChars() []ttyChar { return []ttyChar{{11, unix.VDSUSP}, {17, unix.VSTATUS}} }

func systemInputFlags() []ttyFlag { return []ttyFlag{{42, unix.IUTF8}} }

func systemLocalFlags() []ttyFlag { return nil }

func systemOutputFlags() []ttyFlag { return nil }

func lineSpeeds(t *unix.Termios) (input, output uint32) {
	return uint32(t.Ispeed), uint32(t.Ospeed)
}
