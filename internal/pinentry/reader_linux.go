package pinentry

import (
	"fmt"
	"os"
)

// Readers returns the processes that would read what is typed at a pinentry, on any
// terminal, but for this one, which stops reading by itself. The error is ErrUnknown if
// there is no /proc.
func Readers() ([]Reader, error) {
	tells := EndsPrompts()
	pids, err := namedProcesses(func(name string) bool { return isReader(name, tells) })
	if err != nil {
		return nil, err
	}
	var found []Reader
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		stat, err := readStat(pid)
		if isShortage(err) {
			return nil, err
		}
		if err == nil && stat.terminal != 0 && stat.group == stat.foreground && isInput(pid, stat.terminal) {
			found = append(found, Reader{PID: pid, Name: stat.name, Terminal: stat.terminal})
		}
	}
	return found, nil
}

// isInput reports whether a process's standard input is the terminal, or hidden. That of an
// ssh that git or rsync started is a pipe.
func isInput(pid int, terminal uint64) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", pid))
	if err != nil {
		return os.IsPermission(err)
	}
	number, ok := deviceNumber(info)
	return ok && number == terminal
}
