//go:build unix

package pinentry

import (
	"os"

	"golang.org/x/sys/unix"
)

// Device returns the device number of the terminal at a path, or 0 if there is none.
func Device(path string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return 0
	}
	return uint64(stat.Rdev)
}

// DeviceOf is Device for an open file.
func DeviceOf(file *os.File) uint64 {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR {
		return 0
	}
	return uint64(stat.Rdev)
}
