package pinentry

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// namedProcesses returns the processes whose name, of at most 15 bytes, matches. It reads
// only the names of all processes, about 3 µs for each. The error is ErrUnknown if there is
// no /proc. Too many open files are an error, since any process could then be one of them.
func namedProcesses(matches func(name string) bool) ([]int, error) {
	proc, err := os.Open("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	entries, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry)
		if err != nil {
			continue
		}
		name, err := nameOf(entry)
		if err != nil {
			return nil, err
		}
		if matches(name) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// nameOf returns a process's name, "" if it has ended. Too many open files are an error.
func nameOf(pid string) (string, error) {
	fd, err := unix.Open("/proc/"+pid+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if isShortage(err) {
		return "", err
	}
	if err != nil {
		return "", nil
	}
	defer func() { _ = unix.Close(fd) }()
	var text [64]byte // 15 bytes and a newline (proc(5)); threads of the kernel have more
	n, err := unix.Read(fd, text[:])
	if err != nil {
		return "", nil
	}
	name, _, _ := bytes.Cut(text[:n], []byte{'\n'})
	return string(name), nil
}

func isShortage(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
