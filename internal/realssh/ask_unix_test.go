//go:build unix

package realssh

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A script that does not answer in time is ended with its children, is asked once only, and
// is run: it may be the user's. If this program is run by it, anything else is preferred, but
// a program that is no script may be run again.
func TestFindWithoutAnswer(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	slow := put(t, "#!/bin/sh\n/bin/sleep 100 & echo $! >>"+note+"\nwait\n")
	lies := put(t, "#!/bin/sh\n")
	real, err := exec.LookPath("true")
	require.NoError(t, err)
	binary := t.TempDir()
	require.NoError(t, os.Symlink(real, filepath.Join(binary, "ssh")))
	t.Setenv("PATH", strings.Join([]string{slow, lies, binary, os.Getenv("PATH")}, ":"))
	ctx := Remembering(t.Context())
	begun := time.Now()
	for range 3 {
		path, _, err := Find(ctx)
		require.NoError(t, err)
		require.Equal(t, slow+"/ssh", path)
	}
	require.Less(t, time.Since(begun), 3*askTime)
	child, err := os.ReadFile(note)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(child)))
	require.NoError(t, err, "asked once")
	require.Eventually(t, func() bool { return hasEnded(pid) }, 20*time.Second, 10*time.Millisecond)

	for _, want := range []string{slow, lies, binary, binary} { // each has run this program
		path, environ, err := Find(ctx)
		require.NoError(t, err)
		require.Equal(t, want+"/ssh", path)
		_, value, _ := strings.Cut(environ[len(environ)-1], "=")
		t.Setenv(variable, value)
	}
	require.Equal(t, "4:"+slow+"/ssh:"+lies+"/ssh", os.Getenv(variable))
	path, _, err := find(t, lies) // which is all there is
	require.NoError(t, err)
	require.Equal(t, lies+"/ssh", path)
	var loop *LoopError
	_, _, err = find(t, slow)
	require.ErrorAs(t, err, &loop)
}

// hasEnded is also true for a process that nobody has waited for yet.
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
