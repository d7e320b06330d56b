package pinentry

import (
	"os"

	"golang.org/x/sys/unix"
)

// Readers returns the processes that would read what is typed at a pinentry, on any
// terminal. The system does not tell another process's descriptors, so each one in the
// foreground counts.
func Readers() ([]Reader, error) {
	processes, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var found []Reader
	for i := range processes {
		p := &processes[i]
		name := unix.ByteSliceToString(p.Proc.P_comm[:])
		if p.Eproc.Tdev == -1 || p.Eproc.Pgid != p.Eproc.Tpgid || int(p.Proc.P_pid) == os.Getpid() || !isReader(name, EndsPrompts()) {
			continue
		}
		found = append(found, Reader{PID: int(p.Proc.P_pid), Name: name, Terminal: uint64(p.Eproc.Tdev)})
	}
	return found, nil
}
