package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// ParentName is the name of the program that has started us (sysctl(3), KERN_PROC_PID), ""
// if it is not known.
func ParentName() string {
	parent, err := unix.SysctlKinfoProc("kern.proc.pid", os.Getppid())
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(parent.Proc.P_comm[:])
}
