//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
)

// askpassFixture is a program for SSH_ASKPASS, and an encrypted key whose passphrase
// ssh asks for before it offers it.
type askpassFixture struct {
	*asker.Program
	host *host
}

func newAskpassFixture(t *testing.T) *askpassFixture {
	t.Helper()
	f := &askpassFixture{Program: asker.NewProgram(t), host: newHost(t)}
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-q", "-m", "PEM", "-t", "rsa", "-b", "2048", "-N", "sesame", "-f", f.Path("key")).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Remove(f.Path("key.pub")))
	return f
}

// whoAsks runs a program in a session of its own, with or without a terminal, and returns who
// asks there: the terminal, the askpass program, or nobody.
func (f *askpassFixture) whoAsks(t *testing.T, tty bool, cmd *exec.Cmd) string {
	t.Helper()
	require.NoError(t, os.RemoveAll(f.Path("askpass.called")))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	screen := &lockedBuffer{}
	var reading sync.WaitGroup
	defer reading.Wait()
	if tty {
		master, slave, err := fakesshd.OpenPTY()
		require.NoError(t, err)
		defer func() { _ = master.Close() }()
		cmd.Stdin, cmd.SysProcAttr.Setctty = slave, true
		reading.Go(func() { _, _ = io.Copy(screen, master) })
		defer func() { _ = slave.Close() }()
	}
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	for deadline := time.After(20 * time.Second); ; {
		switch {
		case f.Called() != "":
			return "askpass"
		case strings.Contains(screen.String(), "nter passphrase"):
			return "terminal"
		}
		select {
		case <-ended:
			if f.Called() != "" {
				return "askpass"
			}
			return "nobody"
		case <-deadline:
			t.Fatal("nothing happened")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func withoutAskpass(environ []string) (environment []string) {
	for _, assignment := range environ {
		if name, _, _ := strings.Cut(assignment, "="); name != "DISPLAY" && name != "WAYLAND_DISPLAY" && !strings.HasPrefix(name, "SSH_ASKPASS") {
			environment = append(environment, assignment)
		}
	}
	return environment
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Who asks, with a terminal and without one, is as with the installed ssh.
func TestAskpassEqualsOpenSSH(t *testing.T) {
	f := newAskpassFixture(t)
	seen := map[string]bool{}
	for _, tty := range []bool{false, true} {
		for _, required := range []string{"", "never", "prefer", "force", "FORCE", "other"} {
			for _, display := range []string{"", ":0"} {
				t.Run(fmt.Sprintf("terminal=%v SSH_ASKPASS_REQUIRE=%s DISPLAY=%s", tty, required, display), func(t *testing.T) {
					who := func(ours bool) string {
						cmd := f.host.command(t, ours, "-o", "BatchMode=no", "-i", f.Path("key"), "host", "true")
						cmd.Env = append(withoutAskpass(cmd.Env), "SSH_ASKPASS="+f.Path("askpass"), "DISPLAY="+display)
						if required != "" {
							cmd.Env = append(cmd.Env, "SSH_ASKPASS_REQUIRE="+required)
						}
						return f.whoAsks(t, tty, cmd)
					}
					theirs := who(false)
					require.Equal(t, theirs, who(true))
					seen[theirs] = true
				})
			}
		}
	}
	require.Len(t, seen, 3)
}

// The whole program logs in with an encrypted key whose passphrase an askpass
// program knows; in BatchMode it asks nobody.
func TestAskpassLogsIn(t *testing.T) {
	f := newAskpassFixture(t)
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), "-q", "-p", "-P", "", "-N", "sesame", "-f", f.host.srv.ClientKeyFile).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, batch := range []string{"no", "yes"} {
		cmd := f.host.command(t, true, "-o", "BatchMode="+batch, "host", "echo in")
		cmd.Env = append(withoutAskpass(cmd.Env), "SSH_ASKPASS="+f.Path("askpass"), "SSH_ASKPASS_REQUIRE=force")
		out, err := cmd.Output()
		if batch == "yes" {
			require.Error(t, err)
			require.Empty(t, f.Called())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "in\n", string(out))
		require.Equal(t, "|Enter passphrase for key '"+f.host.srv.ClientKeyFile+"': \n", f.Called())
		require.NoError(t, os.Remove(f.Path("askpass.called")))
	}
}
