package sshfwd

import "golang.org/x/sys/unix"

// posixVDisable is _POSIX_VDISABLE: this control character is not set.
const posixVDisable = 0

// fallbackSpeed is sent for a line speed that has no number.
const fallbackSpeed = 38400

func getTermios(fd int) (*unix.Termios, error) { return unix.IoctlGetTermios(fd, unix.TCGETS) }

func systemChars() []ttyChar { return nil }

func systemInputFlags() []ttyFlag { return []ttyFlag{{37, unix.IUCLC}, {42, unix.IUTF8}} }

func systemLocalFlags() []ttyFlag { return []ttyFlag{{52, unix.XCASE}} }

func systemOutputFlags() []ttyFlag { return []ttyFlag{{71, unix.OLCUC}} }

// lineSpeeds reads the speed from c_cflag: TCGETS does not fill the fields
// that hold numbers.
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
