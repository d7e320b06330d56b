//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
)

// A proxied is a scene whose user has gpg-bridge proxy in ssh_config, for the
// host "dev", and types ssh.
type proxied struct {
	*background
	config string // the ssh_config
}

// proxied writes the ssh_config. more are lines of the host's, before all
// others; CONFIG in them is the file itself, and PROXY what setup writes.
func (s *scene) proxied(t *testing.T, more ...string) *proxied {
	t.Helper()
	env.Tool(t, "ssh")
	p := &proxied{s.background(t), filepath.Join(env.ShortDir(t), "config")}
	host, err := os.ReadFile(s.sshd.ConfigFile)
	require.NoError(t, err)
	text := string(host) + "Host dev\n"
	if len(more) == 0 {
		more = []string{"ProxyCommand PROXY"}
	}
	for _, line := range more {
		text += "  " + p.fill(line) + "\n"
	}
	_, settings, _ := strings.Cut(string(host), "\n")
	require.NoError(t, os.WriteFile(p.config, []byte(text+settings), 0o600))
	return p
}

func (p *proxied) fill(line string) string {
	line = strings.ReplaceAll(line, "PROXY", "PROGRAM proxy -F CONFIG --alias %n --user %r %h %p")
	return strings.NewReplacer("CONFIG", p.config, "PROGRAM", program).Replace(line)
}

// tool starts ssh, or another program that runs it, with the ssh_config.
func (p *proxied) tool(t testing.TB, name string, args ...string) *process {
	t.Helper()
	return p.toolWith(t, nil, name, args...)
}

func (p *proxied) toolWith(t testing.TB, environment []string, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(env.Tool(t, name), args...)
	cmd.Env = environment
	return launchAs(t, cmd, p.laptop, nil)
}

func (p *proxied) ssh(t testing.TB, args ...string) *process {
	t.Helper()
	return p.tool(t, "ssh", append([]string{"-F", p.config}, args...)...)
}

// session starts an ssh that stays, and returns when its command runs.
func (p *proxied) session(t testing.TB, args ...string) *process {
	t.Helper()
	s := p.ssh(t, append(args, "dev", "echo started; exec sleep 600")...)
	s.waitFor(t, &s.stdout, "started\n")
	return s
}

// awaitUp waits until there is one bridge, and it is up.
func (p *proxied) awaitUp(t *testing.T) share.Status {
	t.Helper()
	return p.await(t, func(s share.Status) bool { return s.State == share.Up })
}

// awaitLeases waits until the bridge is up, with that many users.
func (p *proxied) awaitLeases(t *testing.T, n int) share.Status {
	t.Helper()
	return p.await(t, func(s share.Status) bool { return s.State == share.Up && s.Leases == n })
}

// sshSigns signs in a plain ssh session.
func (p *proxied) sshSigns(t *testing.T, args ...string) {
	t.Helper()
	r := p.ssh(t, append(args, "dev", p.signing())...).wait(t)
	require.Zero(t, r.code, "%s", r.stderr)
	require.NotContains(t, r.stderr, "gpg-bridge:")
	p.verify(t, []byte(r.stdout), "hello\n")
}

// children are the laptop's processes of the program that run a command.
func (p *proxied) children(command string) []int {
	var found []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		line, _ := os.ReadFile(entry)
		if words := strings.Split(string(line), "\x00"); len(words) < 2 || words[0] != program || words[1] != command {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(entry), "environ"))
		if err == nil && strings.Contains(string(environ), "GNUPGHOME="+p.laptop.Dir()+"\x00") {
			found = append(found, pid)
		}
	}
	return found
}

// awaitNone waits until no process of the program's runs the command.
func (p *proxied) awaitNone(t *testing.T, command string) {
	t.Helper()
	eventually(t, func() bool { return len(p.children(command)) == 0 }, "gpg-bridge %s is left", command)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// endSession ends a session as a signal to ssh does.
func (p *proxied) endSession(t *testing.T, s *process) {
	t.Helper()
	s.signal(t, syscall.SIGTERM)
	<-s.ended
}

func replaceOnce(text, old, by string) string { return strings.Replace(text, old, by, 1) }
