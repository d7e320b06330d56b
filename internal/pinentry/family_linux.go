package pinentry

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxFamily is how many processes of one prompt are looked at.
const maxFamily = 256

// describe returns a pinentry with what it has started.
func describe(stat procStat) Process {
	p := Process{PID: stat.pid, Started: stat.started(), DevicesKnown: true}
	next := []procStat{stat}
	for len(next) > 0 && len(p.family) < maxFamily {
		current := next[0]
		next = next[1:]
		p.family = append(p.family, member{current.pid, current.start})
		devices, err := devicesOf(current)
		ended := err != nil && !p.family[len(p.family)-1].alive() // and has closed what it had open
		p.DevicesKnown = p.DevicesKnown && (err == nil || ended)
		p.Devices = append(p.Devices, devices...)
		if program := programOf(current.pid); program != "" {
			p.Programs = append(p.Programs, program)
		}
		children, err := childrenOf(current.pid)
		p.DevicesKnown = p.DevicesKnown && err == nil
		for _, child := range children {
			if s, err := readStat(child); err == nil && s.alive() {
				next = append(next, s)
			}
		}
	}
	slices.Sort(p.Devices)
	p.Devices = slices.Compact(p.Devices)
	return p
}

// childrenOf returns a process's children: those that /proc lists for its threads, or, if
// the kernel was built without that, all processes that name it as their parent.
func childrenOf(pid int) ([]int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(lists) == 0 {
		return childrenByParent(pid)
	}
	var children []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended, and another thread has its children
		}
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

func childrenByParent(pid int) ([]int, error) {
	var children []int
	err := eachProcess(func(stat procStat) {
		if stat.parent == pid {
			children = append(children, stat.pid)
		}
	})
	return children, err
}

// eachProcess visits all processes that this one may see.
func eachProcess(visit func(procStat)) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return ErrUnknown
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if stat, err := readStat(pid); err == nil {
			visit(stat)
		}
	}
	return nil
}

// programOf is the path of the program that a process runs, "" if that is hidden.
func programOf(pid int) string {
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return program
}

// devicesOf returns the character devices that a process has open. /dev/tty stands for
// its controlling terminal (tty(4)).
func devicesOf(stat procStat) ([]uint64, error) {
	dir := fmt.Sprintf("/proc/%d/fd", stat.pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var devices []uint64
	for _, entry := range entries {
		info, err := os.Stat(filepath.Join(dir, entry.Name())) // of the open file, whatever is at its path now
		if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			continue
		}
		number, ok := deviceNumber(info)
		if ok && number == unix.Mkdev(5, 0) {
			number = stat.terminal
		}
		if ok {
			devices = append(devices, number)
		}
	}
	return devices, nil
}

func deviceNumber(info fs.FileInfo) (uint64, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(stat.Rdev), true
}
