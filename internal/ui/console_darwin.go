package ui

import "golang.org/x/sys/unix"

const (
	getTermios         = unix.TIOCGETA
	setTermiosAndFlush = unix.TIOCSETAF

	// noKey is _POSIX_VDISABLE, for a control character that is not set.
	noKey = 0xff
)
