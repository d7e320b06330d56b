//go:build unix

package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// A sharer is a laptop whose ssh shares its connections.
type sharer struct {
	*background
	config  string // ssh_config
	control string // where its connections are shared
}

// sharing gives the laptop a ControlPath with tokens, and what else its
// ssh_config is to say of the host.
func (s *scene) sharing(t *testing.T, lines ...string) *sharer {
	t.Helper()
	dir := env.ShortDir(t)
	text, err := os.ReadFile(s.sshd.ConfigFile)
	require.NoError(t, err)
	own := strings.Join(append([]string{"ControlPath " + dir + "/%r-%C", "ControlMaster auto"}, lines...), "\n  ")
	config := filepath.Join(dir, "config")
	replaced := strings.Replace(string(text), "Host host\n", "Host host\n  "+own+"\n", 1) // the first value counts
	require.NoError(t, os.WriteFile(config, []byte(replaced), 0o600))
	b := &sharer{background: s.background(t), config: config}
	out, err := exec.Command(env.Tool(t, "ssh"), "-G", "-F", config, "host").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "controlpath "); ok {
			b.control = path
		}
	}
	require.NotEmpty(t, b.control)
	return b
}

// A shell is the user's own ssh.
type shell struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}
}

// ssh runs the user's own ssh, which lasts until its input ends.
func (b *sharer) ssh(t *testing.T, environment []string, args ...string) *shell {
	t.Helper()
	s := &shell{cmd: exec.Command(env.Tool(t, "ssh"), append([]string{"-F", b.config}, args...)...), ended: make(chan struct{})}
	s.cmd.Env = append(b.laptop.Env(), environment...)
	s.cmd.Stderr = os.Stderr
	s.cmd.WaitDelay = time.Second
	var err error
	s.stdin, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

func (s *shell) end(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal)
	<-s.ended
}

// shell runs an ssh that shares its connection, and waits until it does.
func (b *sharer) shell(t *testing.T, environment ...string) *shell {
	t.Helper()
	s := b.ssh(t, environment, "host", "cat")
	eventually(t, func() bool { _, err := os.Stat(b.control); return err == nil }, "nothing is shared")
	return s
}

// up runs `gpg-bridge up`.
func (b *sharer) up(t *testing.T) {
	t.Helper()
	r := b.do(t, "up", "-F", b.config, "host")
	require.Zero(t, r.code, "%s", r.stderr)
}

func isUp(s share.Status) bool { return s.State == share.Up }

// logins counts how often the host has let somebody in.
func (b *sharer) logins() int {
	return strings.Count(b.sshd.Log(), "Accepted publickey for ") + strings.Count(b.sshd.Log(), "Accepted password for ")
}

// requireTidy: the runtime directory has no socket of ours for the master.
func (b *sharer) requireTidy(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"/*.mux", "/*.look"} {
		left, err := filepath.Glob(b.laptop.Dir() + "/gpg-bridge" + pattern)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// The connection that the user's ssh shares is used: there is one login. The
// user's ssh is as it was, and ends with their shell.
func TestOverAMaster(t *testing.T) {
	b := stage{}.set(t).sharing(t)
	master := b.shell(t)
	b.up(t)
	status := b.status(t)[0]
	require.Equal(t, master.cmd.Process.Pid, status.SharedBy)
	require.Equal(t, b.socket(t), status.RemoteSocket)
	for range 3 {
		b.sign(t)
	}
	require.Equal(t, 1, b.logins())
	b.await(t, func(s share.Status) bool {
		return s.LastOperation != nil && s.LastOperation.Verb == "PKSIGN" && s.Sessions == 0
	})

	b.do(t, "down", "-F", b.config, "host").requireOK(t)
	b.requireNoSocket(t)
	b.requireTidy(t)
	b.up(t)
	b.sign(t)
	require.Equal(t, 1, b.logins())

	require.NoError(t, master.stdin.Close())
	select {
	case <-master.ended:
		require.True(t, master.cmd.ProcessState.Success())
	case <-time.After(patience):
		t.Fatal("the user's ssh does not end with their shell")
	}
}

// However the master ends, the bridge finds another way, and what it left on the
// host is no obstacle.
func TestMasterEnds(t *testing.T) {
	for name, end := range map[string]func(*sharer, *shell) error{
		"with its shell": func(_ *sharer, master *shell) error { return master.stdin.Close() },
		"killed":         func(_ *sharer, master *shell) error { master.end(syscall.SIGKILL); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := stage{}.set(t).sharing(t)
			master := b.shell(t)
			b.up(t)
			b.sign(t)
			require.NoError(t, end(b, master))
			own := b.await(t, func(s share.Status) bool { return isUp(s) && s.SharedBy == 0 })
			require.Equal(t, 1, own.Reconnects)
			require.Equal(t, 2, b.logins())
			b.sign(t)
			b.requireTidy(t)
			_, err := os.Stat(b.control)
			require.Equal(t, name == "killed", err == nil, "a killed ssh leaves its control socket")
		})
	}
}

// The bridge does not keep a connection that the user lets end when it is not
// used.
func TestControlPersist(t *testing.T) {
	b := stage{}.set(t).sharing(t, "ControlPersist 2")
	require.NoError(t, b.ssh(t, nil, "host", "true").stdin.Close())
	eventually(t, func() bool { _, err := os.Stat(b.control); return err == nil }, "nothing is shared")
	b.up(t)
	first := b.status(t)[0]
	require.NotZero(t, first.SharedBy)
	b.sign(t)
	b.await(t, func(s share.Status) bool { return isUp(s) && s.SharedBy == 0 })
	require.NoFileExists(t, b.control)
	b.sign(t)
}

// A bridge that was killed leaves its forward in the master; the next one works.
func TestBridgeOverAMasterIsKilled(t *testing.T) {
	b := stage{}.set(t).sharing(t)
	b.shell(t)
	b.up(t)
	first := b.status(t)[0]
	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	eventually(t, func() bool { return !exists(first.PID) }, "it does not end")
	for range 2 {
		b.up(t)
		b.sign(t)
		b.do(t, "down", "--all").requireOK(t)
		b.requireNoSocket(t)
	}
	require.Equal(t, 1, b.logins())
	b.requireTidy(t)
}

// The host wants more than a key, which a bridge in the background does not
// have: as soon as the user's ssh is in, it uses that.
func TestSecondFactor(t *testing.T) {
	s := stage{sshd: sshd.Config{Options: []string{"AuthenticationMethods publickey,password", "PasswordAuthentication yes"}}}.set(t)
	const password = "second factor"
	setting := exec.Command(env.Tool(t, "chpasswd"), "-c", "SHA512")
	setting.Stdin = strings.NewReader(s.host.Name + ":" + password + "\n")
	require.NoError(t, setting.Run())
	b := s.sharing(t, "PreferredAuthentications publickey,password", "BatchMode no")
	r := b.do(t, "up", "-F", b.config, "host")
	require.Equal(t, 1, r.code)
	waiting := b.await(t, func(s share.Status) bool { return s.State == share.Waiting })
	require.Contains(t, waiting.Problem.Text, "permission denied")

	askpass := filepath.Join(env.ShortDir(t), "askpass")
	require.NoError(t, os.WriteFile(askpass, []byte("#!/bin/sh\necho '"+password+"'\n"), 0o700))
	master := b.shell(t, "SSH_ASKPASS="+askpass, "SSH_ASKPASS_REQUIRE=force")
	start := time.Now()
	up := b.await(t, isUp)
	require.Less(t, time.Since(start), 10*time.Second)
	require.Equal(t, master.cmd.Process.Pid, up.SharedBy)
	b.sign(t)
	require.Equal(t, 1, strings.Count(b.sshd.Log(), "Accepted password for "))

	// It is over with the user's ssh, and comes back with it.
	require.NoError(t, master.stdin.Close())
	<-master.ended
	b.await(t, func(s share.Status) bool { return s.State == share.Waiting && s.SharedBy == 0 })
	again := b.shell(t, "SSH_ASKPASS="+askpass, "SSH_ASKPASS_REQUIRE=force")
	require.Equal(t, again.cmd.Process.Pid, b.await(t, isUp).SharedBy)
	b.sign(t)
}

// A host that allows the master no further session is asked for one of our own.
func TestMasterRefusesASession(t *testing.T) {
	b := stage{sshd: sshd.Config{Options: []string{"MaxSessions 1"}}}.set(t).sharing(t)
	b.shell(t)
	r := b.do(t, "up", "-F", b.config, "host")
	require.Contains(t, []int{0, 1}, r.code)
	require.Zero(t, b.await(t, isUp).SharedBy)
	b.sign(t)
}

// A refused forward is told in the same words as over a connection of our own.
func TestForwardRefusedOverAMaster(t *testing.T) {
	b := stage{sshd: sshd.Config{Options: []string{"AllowStreamLocalForwarding no"}}}.set(t).sharing(t)
	b.shell(t)
	r := b.do(t, "up", "-F", b.config, "host")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "AllowStreamLocalForwarding must be yes")
	require.Equal(t, 1, b.logins())
}

// The user's ssh goes through gpg-bridge proxy, and shares its connection: the
// bridge that this starts waits for that, and there is one login.
func TestOneLoginThroughTheProxy(t *testing.T) {
	s := stage{}.set(t)
	b := s.sharing(t, "ProxyCommand "+program+" proxy --linger 2s -F CONFIG --alias %n --user %r %h %p")
	text, err := os.ReadFile(b.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.config, []byte(strings.ReplaceAll(string(text), "CONFIG", b.config)), 0o600))
	master := b.shell(t)
	up := b.await(t, isUp)
	require.Equal(t, master.cmd.Process.Pid, up.SharedBy)
	b.sign(t)
	require.Equal(t, 1, b.logins())
}
