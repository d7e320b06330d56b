package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The connection is marked as IPQoS says, by the same values as ssh's.
func TestTrafficIsMarkedAsBySSH(t *testing.T) {
	h := newHost(t)
	for _, test := range []struct{ ipqos, tty string }{
		{"", "-tt"},
		{"", "-T"},
		{"lowdelay reliability", "-tt"},
		{"af31 le", "-T"},
		{"ef cs6", "-tt"},
		{"throughput", "-T"},
		{"none", "-tt"},
		{"0x5c none", "-T"},
	} {
		t.Run(test.ipqos+test.tty, func(t *testing.T) {
			t.Parallel()
			args := []string{test.tty, "host", "echo rea''dy; exec sleep 60"}
			if test.ipqos != "" {
				args = append([]string{"-o", "IPQoS=" + test.ipqos}, args...)
			}
			require.Equal(t, h.markOf(t, false, args), h.markOf(t, true, args))
		})
	}
}

// markOf returns the TOS of the connection of a run.
func (h *host) markOf(t *testing.T, ours bool, args []string) int {
	t.Helper()
	s := onScreen(t, h.command(t, ours, args...))
	s.expect("ready", 1)
	tos := tosOf(t, s.cmd.Process.Pid)
	require.NoError(t, s.cmd.Process.Kill())
	_ = waitFor(t, s.cmd)
	return tos
}

// tosOf returns the TOS of the only TCP connection that the process has.
func tosOf(t *testing.T, pid int) int {
	t.Helper()
	pidfd, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer unix.Close(pidfd)
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []int
	for _, entry := range entries {
		if target, _ := os.Readlink(filepath.Join(dir, entry.Name())); !strings.HasPrefix(target, "socket:") {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		require.NoError(t, err)
		if protocol, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); protocol == unix.IPPROTO_TCP {
			tos, err := unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS)
			require.NoError(t, err)
			found = append(found, tos)
		}
		_ = unix.Close(fd)
	}
	require.Len(t, found, 1)
	return found[0]
}
