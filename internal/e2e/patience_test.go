//go:build unix

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// R1 of docs/architecture.md: a session begins within sessionDelay of when it
// would without a bridge. commotion is what a busy machine may add to that.
const (
	sessionDelay = 2 * time.Second
	commotion    = 4 * time.Second
)

// requireBegins runs a command on the host, which must begin, and end, in time
// although something hangs, with one warning. It returns the warning.
func (s *scene) requireBegins(t testing.TB, environment []string, args ...string) result {
	t.Helper()
	start := time.Now()
	out, err := s.sshd.SSH("host", "echo there").Output()
	require.NoError(t, err)
	require.Equal(t, "there\n", string(out))
	without := time.Since(start)

	cmd := exec.Command(program, s.args(append(args, "host", "echo there; exit 7")...)...)
	cmd.Env = environment
	start = time.Now()
	r := launchAs(t, cmd, s.laptop, nil).wait(t)
	took := time.Since(start)
	t.Logf("%v, and %v without a bridge; %s", took, without, r.stderr)
	require.Equal(t, 7, r.code, "%s", r.stderr)
	require.Equal(t, "there\n", r.stdout)
	require.Less(t, took, without+sessionDelay+commotion, "%s", r.stderr)
	require.Len(t, r.messages(t), 2, "%s", r.stderr)
	require.True(t, strings.HasPrefix(r.stderr, "gpg-bridge: warning: "), "%q", r.stderr)
	return r
}

// hung is an environment in which these programs of the laptop's never end.
func (s *scene) hung(t testing.TB, names ...string) []string {
	t.Helper()
	dir := env.ShortDir(t)
	for _, name := range names {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec sleep 600\n"), 0o755))
	}
	for _, entry := range s.laptop.Env() {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return []string{"PATH=" + dir + ":" + path}
		}
	}
	t.Fatal("no PATH")
	return nil
}

// stop stops a process until goOn, or the end of the test. A stop that comes at
// the wrong moment is lost in some sandboxes: it is looked at.
func stop(t testing.TB, pid int) (goOn func()) {
	t.Helper()
	isStopped := func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(t, err)
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "T")
	}
	eventually(t, func() bool {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		return within(10*tick, isStopped) == nil && isStopped()
	}, "process %d does not stop", pid)
	goOn = sync.OnceFunc(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	t.Cleanup(goOn)
	return goOn
}

// stopAgent stops the laptop's agent, which runs from now on.
func (s *scene) stopAgent(t testing.TB) (goOn func()) {
	t.Helper()
	s.extraSocket(t)
	pid, err := s.laptop.AgentPID(t.Context())
	require.NoError(t, err)
	return stop(t, pid)
}

// Whatever hangs of GPG's, here or on the host, costs nobody a shell.
func TestSessionBeginsWhateverHangs(t *testing.T) {
	const local, remote = "GPG on this machine does not answer", "the host is not ready yet"
	const sleep, realGPG, realConf = "exec sleep 600", `exec "$real/gpg" "$@"`, `exec "$real/gpgconf" "$@"`
	for _, c := range []struct {
		name  string
		here  []string          // programs of the laptop's that hang
		there map[string]string // programs of the host's
		sshd  []string
		args  []string
		waits string
	}{
		{name: "gpg", here: []string{"gpg"}, waits: local},
		{name: "gpgconf", here: []string{"gpgconf"}, waits: local},
		{name: "both, and a forward of the user's", here: []string{"gpg", "gpgconf"}, args: []string{"-R", "0:localhost:1", "-o", "LogLevel=ERROR"}, waits: local},
		{name: "the host's import", there: map[string]string{"gpg": `case "$*" in *--import*) ` + sleep + `;; *) ` + realGPG + `;; esac`, "gpgconf": realConf}, waits: remote},
		{name: "the host's gpg", there: map[string]string{"gpg": sleep, "gpgconf": realConf}, waits: remote},
		{name: "the host's gpg, in the only session", sshd: []string{"MaxSessions 1"}, there: map[string]string{"gpg": sleep, "gpgconf": realConf}, waits: remote},
		{name: "the host's gpgconf", there: map[string]string{"gpg": realGPG, "gpgconf": sleep}, waits: remote},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, host := withShims(t, c.sshd...)
			host.put(t, c.there)
			r := s.requireBegins(t, s.hung(t, c.here...), c.args...)
			require.Regexp(t, "gpg on the host cannot be used yet: "+c.waits+"|gpg --import there had not ended yet", r.stderr)
		})
	}
}

// So does an agent that is stopped.
func TestSessionBeginsBesideAStoppedAgent(t *testing.T) {
	s := stage{}.set(t)
	s.stopAgent(t)
	r := s.requireBegins(t, nil)
	require.Contains(t, r.stderr, "GPG on this machine does not answer")
}

// LocalCommand does not wait for the bridge: here the bridge waits for an agent that LocalCommand
// wakes up.
func TestLocalCommandDoesNotWaitForTheBridge(t *testing.T) {
	s := stage{}.set(t)
	s.extraSocket(t)
	pid, err := s.laptop.AgentPID(t.Context()) // which the agent is asked for
	require.NoError(t, err)
	s.stopAgent(t)
	p := s.start(t, "-N", "-o", "PermitLocalCommand=yes", "-o", fmt.Sprintf("LocalCommand=kill -CONT %d", pid), "host")
	p.waitFor(t, &p.stderr, serving)
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
}

// A bridge that is late is up beside the session that could not wait for it.
func TestBridgeThatIsLate(t *testing.T) {
	s := stage{}.set(t)
	s.importKey(t)
	goOn := s.stopAgent(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	p := launch(t, s.laptop, r, s.args("host", "echo there; read line")...)
	p.waitFor(t, &p.stdout, "there")
	require.Contains(t, p.stderr.String(), "gpg on the host cannot be used yet")
	goOn()
	eventually(t, func() bool {
		return strings.Contains(s.host.Run(t, "gpg-connect-agent --no-autostart 'GETINFO restricted' /bye 2>&1 || true"), "OK")
	}, "the bridge is not up")
	s.sign(t)
	_, err = w.WriteString("\n")
	require.NoError(t, err)
	ended := p.wait(t)
	require.Zero(t, ended.code)
	require.Len(t, ended.messages(t), 2, "it says nothing more")
	s.requireNoSocket(t)
}

// Where the bridge is all, it is waited for, and a signal ends the waiting.
func TestForwardOnlyWaits(t *testing.T) {
	s := stage{}.set(t)
	s.extraSocket(t)
	cmd := exec.Command(program, s.args("-N", "host")...)
	cmd.Env = s.hung(t, "gpg")
	p := launchAs(t, cmd, s.laptop, nil)
	p.waitFor(t, &p.stderr, "waiting: GPG on this machine does not answer")
	start := time.Now()
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)
	require.Less(t, time.Since(start), commotion)
	s.requireNoSocket(t)
}
