package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// SIGQUIT ends a session as SIGTERM does: the terminal's modes are restored, the host's socket
// is removed, and no Go stacks are printed. A second SIGQUIT prints none either.
func TestQuitEndsASession(t *testing.T) {
	h := newHost(t)
	var endings []ending
	for _, signals := range [][]os.Signal{{syscall.SIGTERM}, {syscall.SIGQUIT}, {syscall.SIGQUIT, syscall.SIGQUIT}} {
		cmd := h.command(t, true, "-t", "host", "echo ready; while :; do sleep 0.05; done")
		s := onScreen(t, cmd)
		before := s.modes()
		s.expect("ready", 1)
		eventually(t, "raw mode", s.isRaw)
		for _, sig := range signals {
			_ = s.cmd.Process.Signal(sig)
		}
		if len(signals) > 1 { // the second may end it before it has tidied up
			_ = waitFor(t, s.cmd)
			require.NotContains(t, s.text(), "goroutine")
			continue
		}
		status, text := s.waitKeepingModes(before)
		endings = append(endings, ending{status: status, stdout: text})
	}
	require.Equal(t, endings[0], endings[1])
}

// SIGQUIT also ends the program while it asks for a secret.
func TestQuitEndsAQuestion(t *testing.T) {
	f := newAskpassFixture(t)
	cmd := f.host.command(t, true, "-o", "BatchMode=no", "-i", f.Path("key"), "host", "true")
	cmd.Env = withoutAskpass(cmd.Env)
	s := onScreen(t, cmd)
	before := s.modes()
	s.expect(asksPassphrase, 1)
	s.keys("ses\x1c")
	require.Error(t, waitFor(t, s.cmd))
	require.Equal(t, before, s.modes())
	require.NotContains(t, s.text(), "goroutine")
	require.Equal(t, syscall.SIGQUIT, s.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}

// If a file is a FIFO, the program waits for it, as ssh does; and as with ssh the first signal
// ends the program.
func TestSignalsEndTheWaitForAFile(t *testing.T) {
	h := newHost(t)
	for option, sig := range map[string]os.Signal{
		"UserKnownHostsFile":   syscall.SIGTERM,
		"GlobalKnownHostsFile": os.Interrupt,
		"RevokedHostKeys":      syscall.SIGTERM,
		"CertificateFile":      syscall.SIGHUP,
	} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			fifo := filepath.Join(env.ShortDir(t), "fifo")
			require.NoError(t, syscall.Mkfifo(fifo, 0o600))
			cmd := h.command(t, true, "-o", option+"="+fifo, "host", "true")
			require.NoError(t, cmd.Start())
			writer := whenRead(t, fifo)
			defer writer.Close()
			require.NoError(t, cmd.Process.Signal(sig))
			require.Error(t, waitFor(t, cmd))
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok && status.Signaled(), "%v", cmd.ProcessState)
			require.Equal(t, sig, os.Signal(status.Signal()))
		})
	}
}

// Ctrl-C goes to all programs in the foreground, also to the one that ours waits for. Ours dies
// of it, as ssh does, whichever of the two ends first.
func TestInterruptWhileAProgramIsWaitedFor(t *testing.T) {
	h := newHost(t)
	for name, option := range map[string]string{
		"KnownHostsCommand":             `KnownHostsCommand=/bin/sh -c "{WAIT}"`,
		"KnownHostsCommand for the key": `KnownHostsCommand=/bin/sh -c "test %I = ORDER || { {WAIT}; }"`,
		"ProxyCommand":                  "ProxyCommand={WAIT}",
		"ssh -G":                        "",
		"askpass":                       "StrictHostKeyChecking=ask",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				requireInterrupted(t, h, name, option)
			}
		})
	}
}

func requireInterrupted(t *testing.T, h *host, name, option string) {
	t.Helper()
	dir := env.ShortDir(t)
	begun, script := filepath.Join(dir, "begun"), filepath.Join(dir, "wait")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n: >"+begun+"\nexec sleep 77\n"), 0o700))
	args := []string{"-o", "BatchMode=no", "-o", strings.ReplaceAll(option, "{WAIT}", script), "host", "true"}
	if name == "askpass" {
		args = append([]string{"-o", "UserKnownHostsFile=" + filepath.Join(dir, "known")}, args...)
	}
	if name == "ssh -G" {
		config := filepath.Join(dir, "config")
		require.NoError(t, os.WriteFile(config, []byte("Match exec "+script+"\n User x\n"), 0o600))
		args = []string{"-F", config, "host", "true"}
	}
	cmd := h.command(t, true, args...)
	cmd.Env = append(withoutAskpass(cmd.Env), "SHELL=/bin/sh", "SSH_ASKPASS="+script, "SSH_ASKPASS_REQUIRE=force")
	s := onScreen(t, cmd)
	eventually(t, "the program", func() bool { _, err := os.Stat(begun); return err == nil })
	s.keys("\x03")
	require.Error(t, waitFor(t, cmd))
	text := s.text()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok && status.Signaled(), "%v: %s", cmd.ProcessState, text)
	require.Equal(t, syscall.SIGINT, status.Signal())
	require.NotContains(t, text, "gpg-bridge: ")
}

// The content of a FIFO counts, once it comes.
func TestKnownHostsInAFIFO(t *testing.T) {
	h := newHost(t)
	fifo := filepath.Join(env.ShortDir(t), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	known, err := os.ReadFile(h.srv.KnownHosts)
	require.NoError(t, err)
	cmd := h.command(t, true, "-o", "UserKnownHostsFile="+fifo, "host", "exit 3")
	require.NoError(t, cmd.Start())
	writer := whenRead(t, fifo)
	_, err = writer.Write(known)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	require.Equal(t, 3, exitStatus(t, waitFor(t, cmd)))
}

// whenRead opens a FIFO for writing, when a program reads it.
func whenRead(t *testing.T, fifo string) (writer *os.File) {
	t.Helper()
	eventually(t, "a reader of the FIFO", func() bool {
		var err error
		writer, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return !errors.Is(err, syscall.ENXIO)
	})
	return writer
}
