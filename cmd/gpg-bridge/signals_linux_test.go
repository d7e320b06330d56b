package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
)

// A signalPhase is what a run is busy with when a signal comes. In its arguments, {WAIT} is a
// program that waits, {CONFIG} an ssh_config that runs it, {SILENT} the port of a server that
// says nothing, and {KEY} a key with a passphrase.
type signalPhase struct {
	name    string
	args    []string
	said    string // when this is shown, it has begun; or if it is "", when {WAIT} or {SILENT} is used
	raw     bool   // and the terminal is in raw mode
	hidden  bool   // and the terminal hides what is typed
	serving bool   // and what ssh catches is caught
	signals []syscall.Signal
	keys    bool // Ctrl-C and Ctrl-\ are typed, too
}

var (
	allSignals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE}
	twoSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT}
)

var signalPhases = []signalPhase{
	{name: "Match exec", args: []string{"-F", "{CONFIG}", "host", "true"}, signals: twoSignals},
	{name: "connecting", args: []string{"-o", "Port={SILENT}", "host", "true"}, signals: allSignals},
	{name: "KnownHostsCommand", args: []string{"-o", "KnownHostsCommand={WAIT}", "host", "true"}, signals: twoSignals},
	{name: "host key", args: []string{"-o", "StrictHostKeyChecking=ask", "-o", "UserKnownHostsFile=/dev/null", "host", "true"},
		said: "continue connecting", keys: true},
	{name: "passphrase", args: []string{"-o", "IdentitiesOnly=yes", "-i", "{KEY}", "host", "true"},
		said: "Enter passphrase", hidden: true, keys: true},
	{name: "LocalCommand", args: []string{"-o", "PermitLocalCommand=yes", "-o", "LocalCommand={WAIT}", "host", "true"}, signals: twoSignals, keys: true},
	{name: "LocalCommand of -N", args: []string{"-N", "-o", "PermitLocalCommand=yes", "-o", "LocalCommand={WAIT}", "host"}, signals: twoSignals[:1]},
	{name: "session", args: []string{"-v", "-T", "host", "echo rea''dy; exec sleep 77"}, said: "ready", signals: allSignals, keys: true},
	{name: "terminal", args: []string{"-t", "host", "echo rea''dy; exec sleep 77"}, said: "ready", raw: true, signals: twoSignals},
	{name: "-N", args: []string{"-v", "-N", "host"}, serving: true, signals: allSignals, keys: true},
}

// How a run ends at a signal, and whether that is seen as an exit status or as a death, is as
// with ssh, whatever the run is busy with.
func TestSignalsEndARunAsWithSSH(t *testing.T) {
	h := newHost(t)
	key := sshkeys.Keygen(t, env.ShortDir(t), "key", "-N", "sesame", "-m", "PEM", "-t", "rsa", "-b", "2048")
	require.NoError(t, os.Remove(key+".pub")) // else it is offered first
	for _, phase := range signalPhases {
		var causes []any
		for _, sig := range phase.signals {
			causes = append(causes, sig)
		}
		if phase.keys {
			causes = append(causes, "\x03", "\x1c")
		}
		for _, by := range causes {
			t.Run(fmt.Sprintf("%s/%v", phase.name, by), func(t *testing.T) {
				t.Parallel()
				require.Equal(t, phase.run(t, h, key, false, by), phase.run(t, h, key, true, by))
			})
		}
	}
}

var killedBy = regexp.MustCompile(`Killed by signal \d+\.`)

// run returns how a run ends by a signal or a key. SIGPIPE ends nothing, and SIGTERM follows it.
func (p signalPhase) run(t *testing.T, h *host, key string, ours bool, by any) string {
	t.Helper()
	dir := env.ShortDir(t)
	begun, script, config := filepath.Join(dir, "begun"), filepath.Join(dir, "wait"), filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n: >"+begun+"\nexec sleep 77\n"), 0o700))
	require.NoError(t, os.WriteFile(config, []byte("Match exec "+script+"\n User x\n"), 0o600))
	args := []string{"-o", "BatchMode=no"}
	for _, arg := range p.args {
		args = append(args, strings.NewReplacer("{WAIT}", script, "{CONFIG}", config, "{SILENT}", silentServer(t, begun), "{KEY}", key).Replace(arg))
	}
	cmd := h.command(t, ours, args...)
	cmd.Env = append(withoutAskpass(cmd.Env), "SHELL=/bin/sh")
	s := onScreen(t, cmd)
	eventually(t, p.name, func() bool { return p.hasBegun(t, s, ours, begun) })
	switch by := by.(type) {
	case string:
		s.keys(by)
	case syscall.Signal:
		require.NoError(t, cmd.Process.Signal(by))
		if by == syscall.SIGPIPE {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	_ = waitFor(t, cmd)
	_ = s.slave.Close()
	s.reading.Wait()
	status, said := cmd.ProcessState.Sys().(syscall.WaitStatus), killedBy.FindString(s.text())
	require.NotContains(t, s.text(), "goroutine")
	if status.Signaled() {
		return fmt.Sprintf("died of %v", status.Signal())
	}
	return fmt.Sprintf("exit status %d; %s", status.ExitStatus(), said)
}

func (p signalPhase) hasBegun(t *testing.T, s *screen, ours bool, begun string) bool {
	t.Helper()
	switch {
	case p.serving && ours:
		return strings.Contains(s.text(), "serves gpg")
	case p.serving:
		return catches(t, s.cmd.Process.Pid, syscall.SIGTERM)
	case p.said != "":
		return strings.Contains(s.text(), p.said) && (!p.raw || s.isRaw()) && (!p.hidden || !s.isEchoing())
	}
	_, err := os.Stat(begun)
	return err == nil
}

// catches reports whether a process has a handler for a signal (proc(5), SigCgt).
func catches(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(status), "SigCgt:\t")
	caught, err := strconv.ParseUint(line[:16], 16, 64)
	require.NoError(t, err)
	return caught&(1<<(sig-1)) != 0
}

// silentServer returns the port of a server that says nothing, and makes the file begun when
// somebody connects.
func silentServer(t *testing.T, begun string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with l
		if conn, err := l.Accept(); err == nil {
			_ = os.WriteFile(begun, nil, 0o600)
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
