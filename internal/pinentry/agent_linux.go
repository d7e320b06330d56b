package pinentry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on every
// Linux architecture that Go knows (proc(5), sysconf(3)).
const clockTick = 10 * time.Millisecond

// agentName is part of the agent's name in /proc/PID/stat; on some systems not all of it.
const agentName = "gpg-agent"

// isHelper reports whether a name, as /proc has it, of 15 bytes at most, is that of another
// program that a gpg-agent starts (gnupg agent/genkey.c). A child with the agent's own name
// has not executed its program yet. Daemons such as scdaemon are also known by their
// arguments: see isDaemon.
func isHelper(name string) bool {
	return strings.Contains(name, agentName) || slices.Contains([]string{"scdaemon", "tpm2daemon", "gpg-check-patte"}, name)
}

// OfAgent returns the Prompts of the gpg-agent that has this process ID now.
func OfAgent(pid int) ([]Process, error) {
	agent, err := AgentOf(pid)
	if err != nil {
		return nil, err
	}
	return agent.Prompts()
}

// AgentOf returns the gpg-agent that has this process ID now. The error is ErrUnknown if
// the system does not tell, and ErrNotAgent if the process is no gpg-agent of this user,
// or has ended. A process that exists but is not in /proc is hidden.
//
// The process ID came over a socket, which may lead anywhere. If a process hides its
// memory, as Debian's agents do, its directory in /proc belongs to root; its user is in the
// status file.
func AgentOf(pid int) (Agent, error) { return view{readStat, exists, hidesProcesses}.agentOf(pid) }

func (v view) agentOf(pid int) (Agent, error) {
	stat, err := v.stat(pid)
	switch {
	case err != nil && !v.exists(pid) && fileExists("/proc/self/stat"):
		return Agent{}, fmt.Errorf("process %d: %w", pid, ErrNotAgent)
	case err != nil:
		return Agent{}, ErrUnknown
	case !stat.alive() || !strings.Contains(stat.name, agentName) || !ownProcess(pid):
		return Agent{}, fmt.Errorf("process %d: %w", pid, ErrNotAgent)
	case v.hides(): // if not the agent, then its prompts
		return Agent{}, ErrUnknown
	}
	return Agent{member{stat.pid, stat.start}}, nil
}

// Agents returns all gpg-agents of this user. The error is ErrUnknown.
func Agents() ([]Agent, error) { return view{readStat, exists, hidesProcesses}.agents() }

func (v view) agents() ([]Agent, error) {
	if v.hides() {
		return nil, ErrUnknown
	}
	pids, err := namedProcesses(func(name string) bool { return strings.Contains(name, agentName) })
	if err != nil {
		return nil, ErrUnknown
	}
	var found []Agent
	for _, pid := range pids {
		if agent, err := v.agentOf(pid); err == nil {
			found = append(found, agent)
		}
	}
	return found, nil
}

// Prompts returns the pinentries that the agent has started and that still run; an agent
// has one open at a time. The error is ErrUnknown if the system does not tell, and
// ErrNotAgent if the agent has ended, even if its parent has not noticed yet.
func (a Agent) Prompts() ([]Process, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	children, err := childrenOf(a.process.pid)
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, child := range children {
		if stat, err := readStat(child); err == nil && stat.alive() && !isHelper(stat.name) && !isDaemon(child) {
			found = append(found, describe(stat))
		}
	}
	return found, nil
}

// Lives reports whether the agent still runs.
func (a Agent) Lives() bool { return a.check() == nil }

func (a Agent) check() error {
	now, err := AgentOf(a.process.pid)
	if err == nil && now != a {
		err = fmt.Errorf("process %d: %w", a.process.pid, ErrNotAgent)
	}
	return err
}

// Rest returns what is left of a prompt now, whoever its parent is: a pinentry outlives an
// agent that is killed, and goes on reading its terminal. If the process that the agent
// started has ended, it is a pinentry for text that this process had started. ok is false
// if neither runs any more.
func (p Process) Rest() (now Process, ok bool) {
	for i, m := range p.family {
		stat, err := readStat(m.pid)
		if err != nil || stat.start != m.start || !stat.alive() {
			continue
		}
		if i == 0 || AsksOnTerminal(programOf(m.pid)) {
			now = describe(stat)
			_, err := AgentOf(stat.parent)
			now.Orphaned = i == 0 && errors.Is(err, ErrNotAgent)
			return now, true
		}
	}
	return Process{}, false
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func ownProcess(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), "\nUid:")
	line, _, _ := strings.Cut(rest, "\n")
	ids := strings.Fields(line)
	return len(ids) == 4 && ids[0] == strconv.Itoa(os.Getuid())
}

// isDaemon reports whether the agent has started the process as one of its daemons
// (gnupg agent/call-daemon.c, agent/call-scd.c).
func isDaemon(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(line, []byte{0}), func(word []byte) bool {
		return string(word) == "--multi-server"
	})
}
