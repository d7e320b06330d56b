package gpghome

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ, which is 100
// on every Linux architecture that Go knows (proc(5), sysconf(3)).
const clockTick = 10 * time.Millisecond

type procStat struct {
	state   string // one letter, "R", "S", "Z", …
	cpu     time.Duration
	threads int
}

// dead reports whether no thread of the process runs any more. A zombie that still has other
// threads is not dead yet: its sockets still accept.
func (s procStat) dead() bool { return s.state == "Z" && s.threads <= 1 }

// AgentCPU returns the processor time, user and system, that the agent's
// process has used so far, in steps of 10 ms. Linux only. The agent must have
// been started by StartAgent, or AgentPID called before; it is not asked, so
// that an agent that hangs can be measured.
func (h *Home) AgentCPU() (time.Duration, error) {
	pid := int(h.agentPID.Load())
	if pid == 0 {
		return 0, ErrNoAgent
	}
	stat, err := readStat(pid)
	if err != nil {
		return 0, fmt.Errorf("gpghome: %w", err)
	}
	return stat.cpu, nil
}

func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, err
	}
	return parseStat(string(text))
}

// parseStat reads state (field 3), utime (14), stime (15) and num_threads (20)
// of proc(5). The program's name, field 2, may hold spaces and parentheses:
// fields are counted from the last ')'.
func parseStat(text string) (procStat, error) {
	_, err := strconv.Atoi(text[:max(strings.IndexByte(text, ' '), 0)])
	field := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if err != nil || len(field) < 18 {
		return procStat{}, fmt.Errorf("malformed process status %q", text)
	}
	user, userErr := strconv.ParseInt(field[11], 10, 64)
	system, systemErr := strconv.ParseInt(field[12], 10, 64)
	threads, threadsErr := strconv.Atoi(field[17])
	if err := errors.Join(userErr, systemErr, threadsErr); err != nil {
		return procStat{}, err
	}
	return procStat{state: field[0], cpu: time.Duration(user+system) * clockTick, threads: threads}, nil
}
