//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshtest"
	"gpg-bridge/internal/testenv"
)

// askpassFixture is a program for SSH_ASKPASS that leaves a mark, and an
// encrypted key whose passphrase ssh asks for before it offers it.
type askpassFixture struct {
	dir  string
	host *host
}

func newAskpassFixture(t *testing.T) *askpassFixture {
	t.Helper()
	f := &askpassFixture{dir: testenv.ShortDir(t), host: newHost(t)}
	f.script(t, `echo "$SSH_ASKPASS_PROMPT|$1" >>"$0.called"; echo sesame`)
	out, err := exec.Command(testenv.Tool(t, "ssh-keygen"), "-q", "-m", "PEM", "-t", "rsa", "-b", "2048", "-N", "sesame", "-f", f.path("key")).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Remove(f.path("key.pub")))
	return f
}

func (f *askpassFixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *askpassFixture) script(t *testing.T, commands string) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.path("askpass"), []byte("#!/bin/sh\n"+commands+"\n"), 0o700))
}

func (f *askpassFixture) called() string {
	data, _ := os.ReadFile(f.path("askpass.called"))
	return string(data)
}

// whoAsks runs a program in a session of its own, with or without a terminal,
// and tells who asks there: the terminal, the askpass program, or nobody.
func (f *askpassFixture) whoAsks(t *testing.T, tty bool, cmd *exec.Cmd) string {
	t.Helper()
	require.NoError(t, os.RemoveAll(f.path("askpass.called")))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	screen := &lockedBuffer{}
	var reading sync.WaitGroup
	defer reading.Wait()
	if tty {
		master, slave, err := sshtest.OpenPTY()
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
		case f.called() != "":
			return "askpass"
		case strings.Contains(screen.String(), "nter passphrase"):
			return "terminal"
		}
		select {
		case <-ended:
			if f.called() != "" {
				return "askpass"
			}
			return "nobody"
		case <-deadline:
			t.Fatal("nothing happened")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func withoutAskpass(environ []string) (env []string) {
	for _, assignment := range environ {
		if name, _, _ := strings.Cut(assignment, "="); name != "DISPLAY" && name != "WAYLAND_DISPLAY" && !strings.HasPrefix(name, "SSH_ASKPASS") {
			env = append(env, assignment)
		}
	}
	return env
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
						cmd := f.host.command(t, ours, "-o", "BatchMode=no", "-i", f.path("key"), "host", "true")
						cmd.Env = append(withoutAskpass(cmd.Env), "SSH_ASKPASS="+f.path("askpass"), "DISPLAY="+display)
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
	out, err := exec.Command(testenv.Tool(t, "ssh-keygen"), "-q", "-p", "-P", "", "-N", "sesame", "-f", f.host.srv.ClientKeyFile).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, batch := range []string{"no", "yes"} {
		cmd := f.host.command(t, true, "-o", "BatchMode="+batch, "host", "echo in")
		cmd.Env = append(withoutAskpass(cmd.Env), "SSH_ASKPASS="+f.path("askpass"), "SSH_ASKPASS_REQUIRE=force")
		out, err := cmd.Output()
		if batch == "yes" {
			require.Error(t, err)
			require.Empty(t, f.called())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "in\n", string(out))
		require.Equal(t, "|Enter passphrase for key '"+f.host.srv.ClientKeyFile+"': \n", f.called())
		require.NoError(t, os.Remove(f.path("askpass.called")))
	}
}

func TestAskpassAnswers(t *testing.T) {
	f := newAskpassFixture(t)
	var said bytes.Buffer
	p := &prompter{ui: newUI(nil, io.Discard, &said), askpass: askpass{program: f.path("askpass"), allowed: true, first: true}}
	for _, c := range []struct {
		name, script, answer string
		confirmed            bool
	}{
		{"a line", "echo ' ses ame'", " ses ame", false},
		{"no line end", "printf sesame", "sesame", false},
		{"CRLF and more", `printf 'sesame\r\nmore\n'`, "sesame", false},
		{"nothing", "true", "", true},
		{"yes", "echo YES", "YES", true},
		{"no", "echo no", "no", false},
		{"cancelled", "echo sesame; exit 1", "", false},
		{"killed", "kill $$", "", false},
		{"too much", "head -c 100000 /dev/zero | tr '\\0' x", "", false},
		{"no input", "cat; echo sesame", "sesame", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.script(t, c.script)
			secret, err := p.AskSecret(t.Context(), "prompt: ")
			require.NoError(t, err)
			require.Equal(t, c.answer, string(secret))
			answer, err := p.Ask(t.Context(), "prompt: ")
			require.NoError(t, err)
			require.Equal(t, c.answer, answer)
			require.Equal(t, c.confirmed, p.Confirm(t.Context(), "may I?"))
		})
	}
	f.script(t, `echo "$SSH_ASKPASS_PROMPT|$1" >>"$0.called"; echo yes`)
	_, _ = p.AskSecret(t.Context(), "one")
	require.True(t, p.Confirm(t.Context(), "two"))
	require.Equal(t, "|one\nconfirm|two\n", f.called())

	p.askpass.allowed, p.askpass.first = false, false
	require.False(t, p.Confirm(t.Context(), "three"), "nothing but an askpass program can confirm")
	require.Empty(t, said.String())
	p.askpass = askpass{program: f.path("missing"), allowed: true, first: true}
	secret, err := p.AskSecret(t.Context(), "prompt")
	require.NoError(t, err)
	require.Empty(t, secret)
	require.Contains(t, said.String(), "cannot ask through SSH_ASKPASS")
}

func TestAskpassIsCancelled(t *testing.T) {
	f := newAskpassFixture(t)
	f.script(t, `echo >"$0.called"; exec sleep 60`)
	p := &prompter{ui: newUI(nil, io.Discard, io.Discard), askpass: askpass{program: f.path("askpass"), allowed: true, first: true}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for f.called() == "" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	})
	_, err := p.AskSecret(ctx, "prompt")
	require.ErrorIs(t, err, context.Canceled)
}
