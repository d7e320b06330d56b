package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// terminalIsCooked reports whether a terminal is read line by line, and shows
// what is typed: no program has it, and nobody types a password.
func terminalIsCooked(file *os.File) bool {
	state, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	const lines = unix.ICANON | unix.ECHO
	return err == nil && state.Lflag&lines == lines
}

// parentName is the name of the program that has started us (proc(5),
// /proc/PID/comm).
func parentName() string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	return strings.TrimSuffix(string(name), "\n")
}
