package private

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ModeSaysNothing reports whether the open file is on a Windows drive that WSL has
// mounted. The mode that it shows is then meaningless, and no reason to refuse it.
func ModeSaysNothing(f *os.File) bool {
	var mount unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &mount) == nil && isWindowsDrive(int64(mount.Type), kernelRelease())
}

// modeSaysNothingAt is ModeSaysNothing for the file at path.
func modeSaysNothingAt(path string) bool {
	var mount unix.Statfs_t
	return unix.Statfs(path, &mount) == nil && isWindowsDrive(int64(mount.Type), kernelRelease())
}

// isWindowsDrive goes by the file system's type (statfs(2)) and the kernel's release
// (uname(2)). WSL's kernel reaches the drives of Windows by 9p, and shows the same mode for
// every file there, 0777 unless the user has chosen another, which chmod does not change.
// What counts is Windows' own access list, that of the user's profile. On other systems a
// 9p mount, such as a virtual machine's shared directory, shows the real modes.
func isWindowsDrive(filesystem int64, release string) bool {
	return filesystem == unix.V9FS_MAGIC && strings.Contains(strings.ToLower(release), "microsoft")
}

// kernelRelease is "" if the system does not tell.
func kernelRelease() string {
	var system unix.Utsname
	if unix.Uname(&system) != nil {
		return ""
	}
	return unix.ByteSliceToString(system.Release[:])
}
