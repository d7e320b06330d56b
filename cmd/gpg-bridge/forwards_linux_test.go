package main

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var allocated = regexp.MustCompile(`Allocated port [1-9][0-9]* `)

// The port that the host chose is told in ssh's words.
func TestAllocatedPortIsToldAsBySSH(t *testing.T) {
	h := newHost(t)
	for _, args := range [][]string{
		{"-R", "0:localhost:80"},
		{"-R", "localhost:0:[::1]:80"},
		{"-R", "0"},
		{"-o", "RemoteForward=127.0.0.1:0"},
		{"-o", "RemoteForward=0 h:1", "-R", "0"},
		{"-q", "-R", "0"},
		{"-o", "LogLevel=ERROR", "-R", "0:localhost:80"},
	} {
		run := func(ours bool) ending {
			end := runPlainly(t, h.command(t, ours, append(args, "host", "exit 3")...), "", 0)
			end.stderr = allocated.ReplaceAllString(end.stderr, "Allocated port N ")
			return end
		}
		require.Equal(t, run(false), run(true), args)
	}
}

// A configuration that forwards the bridge's own socket causes a warning, and no harm.
func TestForwardOfTheBridgesOwnSocket(t *testing.T) {
	h := newHost(t)
	cmd := h.command(t, true, "-o", "ExitOnForwardFailure=no")
	socket := cmd.Args[slices.Index(cmd.Args, "--remote-socket")+1]
	cmd.Args = append(cmd.Args, "-R", filepath.Dir(socket)+"/./s:/nowhere", "host", "test -S "+socket)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	require.Contains(t, stderr.String(), "your ssh_config already forwards")
	require.NotContains(t, stderr.String(), "remote port forwarding failed")
}
