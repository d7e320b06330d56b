package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// clockTick is the unit of the CPU times in /proc (USER_HZ, proc(5)).
const clockTick = 10 * time.Millisecond

// A lane is one way to reach two agents of the laptop: the real one, and the bulkAgent.
type lane struct {
	name    string
	openSSH bool
	program string // the path of gpg-bridge, "" for a lane without
	args    []string

	agent, bulk forwarder
	got         [numMeasures][]float64
}

// A forwarder is a running program, and the socket that it made on a host of its
// own.
type forwarder struct {
	socket string
	cmd    *exec.Cmd // nil: the agent itself, without SSH
}

func (l *lab) lanes(programs []string) []*lane {
	var lanes []*lane
	for _, program := range programs {
		lanes = append(lanes, &lane{name: filepath.Base(program), program: program})
	}
	return append(lanes,
		&lane{name: "ssh -N -R", openSSH: true, args: []string{"-N", "host"}},
		&lane{name: "ssh -R + session", openSSH: true, args: []string{"host", "sleep 600"}},
		&lane{name: "no ssh"})
}

func (on *lane) open(l *lab, bulkSocket string) {
	on.agent = l.startForwarder(on, l.extra)
	on.bulk = l.startForwarder(on, bulkSocket)
}

// startForwarder returns when the socket on the host leads to the agent.
func (l *lab) startForwarder(on *lane, agent string) forwarder {
	if on.program == "" && !on.openSSH {
		return forwarder{socket: agent}
	}
	host := gpghome.ForTest(l.p)
	l.must(host.ImportPublic(context.Background(), l.laptop))
	socket, err := host.AgentSocket(context.Background())
	l.must(err)
	server := sshd.Start(l.p, sshd.Config{Options: []string{"SetEnv GNUPGHOME=" + host.Dir()}})
	common := []string{"-F", server.ConfigFile}
	if l.cipher != "" {
		common = append(common, "-o", "Ciphers="+l.cipher)
	}
	var cmd *exec.Cmd
	if on.openSSH {
		cmd = exec.Command("ssh", append(append(common, "-R", socket+":"+agent), on.args...)...)
	} else {
		cmd = exec.Command(on.program, append(append([]string{"ssh"}, common...), "--agent-socket", agent, "-N", "host")...)
	}
	cmd.Env = l.laptop.Env()
	l.must(cmd.Start())
	l.p.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	f := forwarder{socket: socket, cmd: cmd}
	deadline := time.Now().Add(readyTimeout)
	for l.connectOnce(f.socket) != nil {
		if time.Now().After(deadline) {
			l.p.Fatal(on.name + ": no greeting within " + readyTimeout.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	return f
}

// rss returns the resident set of the real agent's forwarder, in MB; 0 if there is none, or no
// /proc.
func (on *lane) rss(l *lab) float64 {
	for line := range strings.Lines(on.proc(l, "status")) {
		if kib, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			l.must(err)
			return float64(n) / 1024
		}
	}
	return 0
}

// cpu returns the CPU time that it has used (utime and stime, proc(5)).
func (on *lane) cpu(l *lab) time.Duration {
	_, fields, found := strings.Cut(on.proc(l, "stat"), ") ")
	if !found {
		return 0
	}
	var ticks int
	for _, field := range strings.Fields(fields)[11:13] {
		n, err := strconv.Atoi(field)
		l.must(err)
		ticks += n
	}
	return time.Duration(ticks) * clockTick
}

func (on *lane) proc(l *lab, name string) string {
	if on.agent.cmd == nil {
		return ""
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", on.agent.cmd.Process.Pid, name))
	if !errors.Is(err, fs.ErrNotExist) {
		l.must(err)
	}
	return string(text)
}
