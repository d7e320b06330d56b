package pinentry

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A view is how the system lets this process see others.
type view struct {
	stat   func(pid int) (procStat, error)
	exists func(pid int) bool
	hides  func() bool // see hidesProcesses
}

// EndsPrompts reports whether this system can find an agent's prompts, and end one.
func EndsPrompts() bool { return !hidesProcesses() }

// hidesProcesses reports whether /proc may lack an agent or a pinentry that runs. With its
// mount option hidepid (proc(5)), /proc shows a process only those that it may trace. These
// are the user's own, except those that hide their memory, as Debian's gpg-agent does. It
// is found out once, since it means reading the list of all mounts.
var hidesProcesses = sync.OnceValue(func() bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	return err != nil || mountsHide(string(mounts)) && !mayTraceAll()
})

// mountsHide looks for the option in the text of /proc/PID/mountinfo (proc(5)). If there
// are several mounts on top of each other, one that hides is enough.
func mountsHide(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		mount, filesystem, _ := strings.Cut(line, " - ")
		at, of := strings.Fields(mount), strings.Fields(filesystem)
		if len(at) < 6 || at[4] != "/proc" || len(of) < 3 || of[0] != "proc" {
			continue
		}
		if slices.ContainsFunc(strings.Split(of[2], ","), hides) {
			return true
		}
	}
	return false
}

// hides reports whether a mount option hides processes. An unknown value of hidepid counts as
// doing so.
func hides(option string) bool {
	value, ok := strings.CutPrefix(option, "hidepid=")
	return ok && value != "0" && value != "off"
}

// mayTraceAll reports whether this process has CAP_SYS_PTRACE, so that nothing is hidden
// from it. Root has it, but not in most containers.
func mayTraceAll() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // of capabilities 0 to 31, and of the others
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_PTRACE) != 0
}

// exists reports whether there is a process with this ID, visible or not.
func exists(pid int) bool {
	if pid <= 0 { // which stand for groups of processes (kill(2))
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}
