package sshd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The functions here read Linux's /proc (proc(5)). On other systems they find no process, and
// only the processes that sshd itself ends are ended.

// pids returns the IDs of all processes.
func pids() []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func procFile(pid int, name string) []byte {
	data, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	return data
}

// statusField returns the words of a field of /proc/PID/status, none if the process has gone.
func statusField(pid int, name string) []string {
	for line := range strings.Lines(string(procFile(pid, "status"))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(value)
		}
	}
	return nil
}

// isAlive reports whether a process runs; a zombie does not, and only waits for its parent.
func isAlive(pid int) bool {
	state := statusField(pid, "State")
	return len(state) > 0 && state[0] != "Z" && state[0] != "X"
}

func alive(pids []int) []int {
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !isAlive(pid) })
}

// descendants returns the children of a process, their children, and so on.
func descendants(root int) []int {
	children := map[int][]int{}
	for _, pid := range pids() {
		if parent := statusField(pid, "PPid"); len(parent) == 1 {
			if ppid, err := strconv.Atoi(parent[0]); err == nil {
				children[ppid] = append(children[ppid], pid)
			}
		}
	}
	found := slices.Clone(children[root])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// withEnviron returns the processes with this NAME=VALUE in their environment.
func withEnviron(variable string) []int {
	var found []int
	for _, pid := range pids() {
		fields := bytes.Split(procFile(pid, "environ"), []byte{0})
		if slices.ContainsFunc(fields, func(f []byte) bool { return string(f) == variable }) && isAlive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// ofUser returns the processes with this real user ID.
func ofUser(uid int) []int {
	var found []int
	for _, pid := range pids() {
		if ids := statusField(pid, "Uid"); len(ids) > 0 && ids[0] == strconv.Itoa(uid) && isAlive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func signal(pid int, sig os.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(sig)
		_ = p.Release()
	}
}

// endAll asks the processes to end, and kills those that have not after a second.
func endAll(list func() []int) error {
	for _, pid := range list() {
		signal(pid, syscall.SIGTERM)
	}
	deadline := time.Now().Add(time.Second)
	for time.Now().Before(deadline) {
		if len(list()) == 0 {
			return nil
		}
		time.Sleep(pollInterval)
	}
	return kill(list)
}

// kill ends the processes and returns when they are gone.
func kill(list func() []int) error {
	deadline := time.Now().Add(stopTimeout)
	for {
		left := list()
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", left)
		}
		for _, pid := range left {
			signal(pid, syscall.SIGKILL)
		}
		time.Sleep(pollInterval)
	}
}
