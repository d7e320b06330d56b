//go:build unix

package bridge

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/fakesshd"
)

// hangingProgram returns a program that hangs, with a child that keeps its output open. mark
// is how long the child sleeps, which identifies it among all processes.
func hangingProgram(t *testing.T) (path, mark string) {
	t.Helper()
	mark = fmt.Sprintf("%d.%d", 10000+os.Getpid()%1000, time.Now().UnixNano())
	path = filepath.Join(t.TempDir(), "hangs")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nsleep "+mark+" &\nwait\n"), 0o700))
	return path, mark
}

func requireNoneLeft(t *testing.T, mark string) {
	t.Helper()
	out, err := exec.Command("ps", "axo", "stat,args").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		require.False(t, strings.Contains(line, "sleep "+mark) && !strings.HasPrefix(line, "Z"), "%s is left", line)
	}
}

// A program that hangs on this side delays the check for some seconds, is named, and is ended.
func TestCheckIsBounded(t *testing.T) {
	check := func(t *testing.T, local *Local) Finding {
		t.Helper()
		start := time.Now()
		found := local.Check(t.Context())
		require.Less(t, time.Since(start), 24*time.Second) // on a busy machine
		return found
	}
	t.Run("gpg", func(t *testing.T) {
		t.Parallel()
		local := newLaptop(t).local()
		path, mark := hangingProgram(t)
		local.Keyring.Gpg = path
		found := check(t, local)
		require.NoError(t, found.Err)
		require.ErrorContains(t, found.KeysErr, "did not answer within 10s")
		requireNoneLeft(t, mark)
	})
	t.Run("gpgconf", func(t *testing.T) {
		t.Parallel()
		local := newLaptop(t).local()
		path, mark := hangingProgram(t)
		local.Agent.Locator.Gpgconf = path
		found := check(t, local)
		var silent *agentside.SilentError
		require.ErrorAs(t, found.Err, &silent)
		require.Equal(t, "gpgconf", silent.Program)
		require.Contains(t, silent.Hint(), "gpgconf --list-dirs")
		requireNoneLeft(t, mark)
	})
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		alice := newLaptop(t)
		pid, err := alice.AgentPID(t.Context())
		require.NoError(t, err)
		defer syscall.Kill(pid, syscall.SIGCONT)
		eventually(t, func() bool { // the kernels of some sandboxes lose a SIGSTOP now and then
			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") T ")
		})
		found := check(t, alice.local())
		var ungreeted *agentside.NoGreetingError
		require.ErrorAs(t, found.Err, &ungreeted)
		require.NoError(t, found.KeysErr, "it is said once")
	})
}

// greets reports whether the laptop's agent greets soon.
func greets(t *testing.T, of *laptop) bool {
	t.Helper()
	path, err := of.ExtraSocket(t.Context())
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	if err != nil {
		return false
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Second)))
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

// An agent that was asked to end waits for its clients: an idle one on the host is
// disconnected, and the next client is served by a new agent.
func TestIdleClientDoesNotHoldAnAgentThatEnds(t *testing.T) {
	t.Parallel()
	alice, h := newLaptop(t), newHost(t, &fakesshd.Server{})
	u := start(t, connect(t, h.config), alice.local(), Options{})
	u.requireVerified(t)
	idle, err := dialAgent(h.socket)
	require.NoError(t, err)
	defer idle.Close()
	require.NoError(t, idle.ask("GETINFO version", "OK"))
	pid, err := alice.AgentPID(t.Context())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	eventually(t, func() bool { return !greets(t, alice) })
	require.NoError(t, h.sign(t, alice))
	require.Error(t, idle.ask("GETINFO version", "OK"), "it was let go")
	after, err := alice.AgentPID(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, pid, after)
	require.Empty(t, u.all())
}
