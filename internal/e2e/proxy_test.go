//go:build unix

package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// The programs that people use over ssh gain the agent, and lose nothing.
func TestProxy(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	r := p.ssh(t, "dev", "cat; echo done; exit 7").wait(t)
	require.Equal(t, 7, r.code)
	require.Equal(t, "done\n", r.stdout)
	require.Empty(t, r.stderr)

	held := p.session(t)
	status := p.awaitLeases(t, 1)
	require.Equal(t, share.Background, status.Kind)
	require.False(t, status.Pinned)
	p.sshSigns(t)
	p.transfers(t)
	p.gitOverSSH(t)
	require.Equal(t, status.PID, p.awaitLeases(t, 1).PID, "all of them used one bridge")
	p.endSession(t, held)
	p.awaitLeases(t, 0)
	p.awaitNone(t, "proxy")
	p.sshSigns(t)
	require.Equal(t, status.PID, p.awaitUp(t).PID, "it lingers")
}

// transfers takes files there and back.
func (p *proxied) transfers(t *testing.T) {
	t.Helper()
	dir := env.ShortDir(t)
	file, back := filepath.Join(dir, "file"), filepath.Join(dir, "back")
	text := strings.Repeat("0123456789abcde\n", 1<<16)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	batch := filepath.Join(dir, "batch")
	require.NoError(t, os.WriteFile(batch, []byte("put "+file+" sent\nget sent "+back+"\n"), 0o600))
	for _, commands := range [][][]string{
		{{"scp", "-q", "-F", p.config, file, "dev:sent"}, {"scp", "-q", "-F", p.config, "dev:sent", back}},
		{{"sftp", "-q", "-F", p.config, "-b", batch, "dev"}},
		{{"rsync", "-e", "ssh -F " + p.config, file, "dev:sent"}, {"rsync", "-e", "ssh -F " + p.config, "dev:sent", back}},
	} {
		for _, command := range commands {
			if command[0] == "rsync" {
				env.Tool(t, "rsync")
			}
			r := p.tool(t, command[0], command[1:]...).wait(t)
			require.Zero(t, r.code, "%v: %s", command, r.stderr)
			require.Empty(t, r.stderr, "%v", command)
		}
		got, err := os.ReadFile(back)
		require.NoError(t, err)
		require.True(t, string(got) == text, "%v", commands)
		require.NoError(t, os.Remove(back))
		p.host.Run(t, "rm sent")
	}
}

func (p *proxied) gitOverSSH(t *testing.T) {
	t.Helper()
	p.host.Run(t, strings.Replace(onHostWithGit, "KEY", p.key.Fingerprint, 1))
	clone := filepath.Join(env.ShortDir(t), "clone")
	r := p.toolWith(t, []string{"GIT_SSH_COMMAND=ssh -F " + p.config}, "git", "clone", "-q", "dev:project", clone).wait(t)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Empty(t, r.stderr)
	require.FileExists(t, filepath.Join(clone, "file"))
}

// ssh takes the socket and the proxy ends; another process of ours then holds
// the bridge for as long as ssh has the socket.
func TestProxyHandsTheSocketOver(t *testing.T) {
	p := stage{}.set(t).proxied(t, "ProxyCommand PROXY", "ProxyUseFdpass yes")
	held := p.session(t)
	p.awaitLeases(t, 1)
	require.Empty(t, p.children("proxy"))
	require.Len(t, p.children("attend"), 1)
	p.sshSigns(t)
	p.transfers(t)
	p.awaitLeases(t, 1)
	kill(t, held.cmd.Process.Pid)
	p.awaitLeases(t, 0)
	p.awaitNone(t, "attend")

	// A master in the background has the socket when its first ssh has ended.
	control := filepath.Join(env.ShortDir(t), "c")
	master := []string{"-o", "ControlMaster=auto", "-o", "ControlPath=" + control, "-o", "ControlPersist=60"}
	r := p.ssh(t, append(master, "dev", "echo on")...)
	<-r.ended // its stderr stays open, as the master's
	require.Equal(t, "on\n", r.stdout.String())
	p.awaitLeases(t, 1)
	p.ssh(t, append(master, "-O", "exit", "dev")...).wait(t)
	p.awaitLeases(t, 0)
	p.awaitNone(t, "attend")
}

func TestProxyWithControlMaster(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	control := filepath.Join(env.ShortDir(t), "c")
	master := []string{"-o", "ControlMaster=auto", "-o", "ControlPath=" + control}
	held := p.session(t, master...)
	first := p.awaitLeases(t, 1)
	for range 3 {
		p.sshSigns(t, master...)
	}
	require.Equal(t, first.PID, p.awaitLeases(t, 1).PID, "one connection has one proxy")
	p.endSession(t, held)
	p.awaitLeases(t, 0)
}

// Whatever happens to gpg's side, ssh works. What the bridge cannot do at all is
// said once.
func TestProxyWithoutAgent(t *testing.T) {
	for name, c := range map[string]struct {
		flag  string
		state share.State
	}{
		"stopped":     {"", share.Up}, // and started
		"nowhere":     {"--agent-socket /nonexistent/S", share.Waiting},
		"no such key": {"--keys nobody@example.org", share.Up},
	} {
		t.Run(name, func(t *testing.T) {
			p := stage{}.set(t).proxied(t, "ProxyCommand PROGRAM proxy -F CONFIG "+c.flag+" --alias %n --user %r %h %p")
			require.NoError(t, p.laptop.StopAgent(t.Context()))
			said := 0
			for range 3 {
				r := p.ssh(t, "dev", "echo on").wait(t)
				require.Zero(t, r.code)
				require.Equal(t, "on\n", r.stdout)
				said += len(r.messages(t))
				p.await(t, func(s share.Status) bool { return s.State == c.state })
			}
			if c.state == share.Up {
				require.Zero(t, said)
			} else {
				require.LessOrEqual(t, said, 2, "a line, and what to do")
			}
		})
	}
}

// ssh itself asks, or refuses; the bridge waits until the key is known.
func TestProxyToAnUnknownHost(t *testing.T) {
	known := filepath.Join(env.ShortDir(t), "known_hosts")
	p := stage{}.set(t).proxied(t, "ProxyCommand PROXY", "UserKnownHostsFile "+known)
	r := p.ssh(t, "dev", "echo on").wait(t)
	require.Equal(t, 255, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "Host key verification failed.")
	require.NotContains(t, r.stderr, "gpg-bridge:", "ssh has said it")

	held := p.session(t, "-o", "StrictHostKeyChecking=accept-new")
	p.awaitLeases(t, 1)
	p.sshSigns(t)
	p.endSession(t, held)
}

// Neither ssh nor the bridge gets in: ssh says so. ssh alone gets in: it works,
// and one message in all says why gpg does not.
func TestProxyWithTheWrongKey(t *testing.T) {
	other := sshd.Start(t, sshd.Config{})
	p := stage{}.set(t).proxied(t)
	p.replace(t, "Host dev\n", "Host dev\n  IdentityFile "+other.ClientKeyFile+"\nHost *\n")
	p.replaceLast(t, "  IdentityFile "+p.sshd.ClientKeyFile+"\n", "")
	r := p.ssh(t, "dev", "true").wait(t)
	require.Equal(t, 255, r.code)
	require.Contains(t, r.stderr, "Permission denied")
	said := r.stderr
	p.await(t, func(s share.Status) bool { return s.State == share.Waiting })

	mine := []string{"-o", "IdentityFile=" + p.sshd.ClientKeyFile, "dev"}
	for range 3 {
		in, w, err := os.Pipe()
		require.NoError(t, err)
		s := launchAs(t, p.sshCommand(t, append(mine, "cat")...), p.laptop, in)
		eventually(t, func() bool { // ssh goes on, and on
			_, _ = w.WriteString("line\n")
			return strings.Count(s.stdout.String(), "line") > 100 || strings.Contains(s.stderr.String(), "gpg-bridge:")
		}, "ssh is silent")
		_, _ = w.Close(), in.Close()
		r := s.wait(t)
		require.Zero(t, r.code)
		said += r.stderr
	}
	require.Equal(t, 1, strings.Count(said, "gpg-bridge: warning: no bridge for gpg on dev: "), "%s", said)

	off := p.toolWith(t, []string{"GPG_BRIDGE=off"}, "ssh", append(append([]string{"-F", p.config}, mine...), "echo on")...).wait(t)
	require.Equal(t, result{stdout: "on\n"}, off)
}

// kill -9 at any of the three: nothing is left, and the next use works.
func TestProxyKilled(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	held := p.session(t)
	first := p.awaitLeases(t, 1)
	kill(t, held.cmd.Process.Pid)
	<-held.ended
	p.awaitNone(t, "proxy")
	p.awaitLeases(t, 0)

	held = p.session(t)
	p.awaitLeases(t, 1)
	kill(t, p.children("proxy")[0])
	r := held.wait(t)
	require.Equal(t, 255, r.code)
	p.awaitLeases(t, 0)

	held = p.session(t)
	p.awaitLeases(t, 1)
	kill(t, first.PID)
	second := p.await(t, func(s share.Status) bool { return s.State == share.Up && s.PID != first.PID && s.Leases == 1 })
	p.sshSigns(t)
	require.Equal(t, []int{second.PID}, p.pids())
	p.endSession(t, held)
	p.awaitNone(t, "proxy")
}

// down is down for those that are connected; the next connection wants one.
func TestProxyAndDown(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	held := p.session(t)
	p.awaitLeases(t, 1)
	p.down(t, "--all")
	require.Empty(t, p.status(t))
	again := p.session(t)
	p.awaitLeases(t, 1)
	for _, s := range []*process{held, again} {
		p.endSession(t, s)
	}
	p.awaitLeases(t, 0)
}

func TestProxySignals(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		held := p.session(t)
		p.awaitLeases(t, 1)
		require.NoError(t, syscall.Kill(p.children("proxy")[0], sig))
		require.Equal(t, 255, held.wait(t).code)
		p.awaitLeases(t, 0)
	}
}

// Nobody listens: the reason, and what to do, as ssh without a proxy.
func TestProxyToNobody(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	p.sshd.Stop()
	r := p.ssh(t, "dev", "true").wait(t)
	require.Equal(t, 255, r.code)
	require.Contains(t, r.stderr, "ssh: connect to host ")
	require.Empty(t, p.pids())
}

// While a program on the host has the terminal, nothing is written over it.
func TestProxyKeepsOffTheTerminal(t *testing.T) {
	p := stage{}.set(t).proxied(t, "ProxyCommand PROGRAM proxy -F CONFIG --agent-socket /nonexistent/S --alias %n --user %r %h %p")
	line := "ssh -F " + p.config + " -t dev 'echo begin; until test -e go; do sleep 0.05; done; echo end'"
	r, w, err := os.Pipe() // script ends when its input does
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	s := launchAs(t, exec.Command(env.Tool(t, "script"), "-qec", line, "/dev/null"), p.laptop, r)
	s.waitFor(t, &s.stdout, "begin\r\n")
	p.await(t, func(s share.Status) bool { return s.State == share.Waiting })
	for range 100 { // keys, so that ssh goes on
		_, err := w.WriteString("x")
		require.NoError(t, err)
		time.Sleep(tick)
	}
	p.host.WriteFile(t, "go", nil, 0o600)
	result := s.wait(t)
	require.Zero(t, result.code)
	_, screen, _ := strings.Cut(result.stdout, "begin\r\n")
	screen, _, found := strings.Cut(screen, "end\r\n")
	require.True(t, found, "%q", result.stdout)
	require.Empty(t, strings.Trim(screen, "x"))
}

// A program that speaks SSH over a socket pair, as libssh does, is no ssh that
// waits for a socket.
func TestProxyOverASocketPair(t *testing.T) {
	p := stage{}.set(t).proxied(t)
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	cmd := exec.Command(program, "proxy", "-F", p.config, "--alias", "dev", p.sshd.Host, strconv.Itoa(p.sshd.Port))
	cmd.Env, cmd.Stdin, cmd.Stdout = append(p.laptop.Env(), "GPG_BRIDGE=off"), theirs, theirs
	require.NoError(t, cmd.Start())
	require.NoError(t, theirs.Close())
	banner := make([]byte, len("SSH-2.0-OpenSSH"))
	_, err = ours.WriteString("SSH-2.0-libssh_0.10\r\n")
	require.NoError(t, err)
	_, err = io.ReadFull(ours, banner)
	require.NoError(t, err)
	require.Equal(t, "SSH-2.0-OpenSSH", string(banner))
	require.NoError(t, ours.Close())
	_ = cmd.Wait()
}
