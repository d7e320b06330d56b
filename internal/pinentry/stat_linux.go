package pinentry

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// procStat has fields of /proc/PID/stat.
type procStat struct {
	pid      int
	name     string // at most 15 bytes
	state    string // one letter
	parent   int
	group    int    // of processes
	terminal uint64 // the device number of the controlling terminal, or 0
	// foreground is the foreground process group of the terminal, -1 without one.
	foreground int
	start      uint64 // in clock ticks since the system was started
}

func (s procStat) alive() bool { return s.state != "Z" && s.state != "X" }

// started is when the process began, rounded down.
func (s procStat) started() Instant { return Instant(s.start) * Instant(clockTick) }

func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(text))
}

var errStat = errors.New("malformed process status")

// parseStat reads fields 1 to 5, 7, 8 and 22 of proc(5). The program's name, field 2, may
// hold spaces and parentheses: the others are counted from the last ')'.
func parseStat(text string) (procStat, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return procStat{}, errStat
	}
	field := strings.Fields(text[end+1:])
	if len(field) < 20 {
		return procStat{}, errStat
	}
	pid, pidErr := strconv.Atoi(strings.TrimSpace(text[:open]))
	parent, parentErr := strconv.Atoi(field[1])
	group, groupErr := strconv.Atoi(field[2])
	foreground, foregroundErr := strconv.Atoi(field[5])
	terminal, terminalErr := strconv.ParseInt(field[4], 10, 64)
	start, startErr := strconv.ParseUint(field[19], 10, 64)
	if err := errors.Join(pidErr, parentErr, groupErr, foregroundErr, terminalErr, startErr); err != nil {
		return procStat{}, errStat
	}
	return procStat{
		pid: pid, name: text[open+1 : end], state: field[0], parent: parent, group: group, foreground: foreground,
		terminal: terminalNumber(uint32(terminal)), start: start,
	}, nil
}

// terminalNumber is the device number that field 7 encodes: the minor number in bits 0 to 7
// and 20 to 31, the major number in bits 8 to 19.
func terminalNumber(packed uint32) uint64 {
	return unix.Mkdev(packed>>8&0xfff, packed&0xff|packed>>12&0xfff00)
}
