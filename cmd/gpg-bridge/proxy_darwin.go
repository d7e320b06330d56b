package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminalIsCooked reports whether a terminal is read line by line, and shows
// what is typed: no program has it, and nobody types a password.
func terminalIsCooked(file *os.File) bool {
	state, err := unix.IoctlGetTermios(int(file.Fd()), unix.TIOCGETA)
	const lines = unix.ICANON | unix.ECHO
	return err == nil && state.Lflag&lines == lines
}

// parentName is the name of the program that has started us (sysctl(3),
// KERN_PROC_PID).
func parentName() string {
	parent, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getppid())
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(parent.Proc.P_comm[:])
}
