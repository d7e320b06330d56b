//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
)

// background is the scene with what runs in the background on its laptop.
type background struct {
	*scene
	dir *share.Dir
}

// background opens the laptop's runtime directory. At the test's end nothing may
// be left that is in it.
func (s *scene) background(t *testing.T) *background {
	t.Helper()
	path := filepath.Join(s.laptop.Dir(), "gpg-bridge")
	dir, err := share.OpenAt(path)
	require.NoError(t, err)
	b := &background{s, dir}
	t.Cleanup(func() {
		pids := b.pids()
		_ = launch(t, s.laptop, nil, "down", "--all").wait(t)
		for _, pid := range append(pids, b.pids()...) {
			if within(patience, func() bool { return !exists(pid) }) != nil {
				t.Errorf("process %d is left", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		b.requireHealthyLogs(t)
		left, err := filepath.Glob(path + "/*.sock")
		require.NoError(t, err)
		require.Empty(t, left)
		require.NoError(t, dir.Close())
	})
	return b
}

// requireHealthyLogs: no data race, no panic, in what nobody saw.
func (b *background) requireHealthyLogs(t *testing.T) {
	t.Helper()
	logs, err := filepath.Glob(b.laptop.Dir() + "/gpg-bridge/*.log")
	require.NoError(t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		for _, word := range []string{"DATA RACE", "panic:", "fatal error:"} {
			require.NotContains(t, string(text), word)
		}
	}
}

// pids are the processes that keep bridges of this laptop.
func (b *background) pids() []int {
	var found []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, entry := range entries {
		line, _ := os.ReadFile(entry)
		if words := strings.Split(string(line), "\x00"); len(words) < 2 || words[0] != program || words[1] != "keep" {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(filepath.Dir(entry), "environ"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if err == nil && strings.Contains(string(environ), "GNUPGHOME="+b.laptop.Dir()+"\x00") {
			found = append(found, pid)
		}
	}
	return found
}

// exists is false for a zombie, which waits for whoever is PID 1 here.
func exists(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

// do runs a command to its end.
func (b *background) do(t *testing.T, args ...string) result {
	t.Helper()
	return launch(t, b.laptop, nil, args...).wait(t)
}

// up runs `gpg-bridge up`, which must be able to.
func (b *background) up(t *testing.T, args ...string) {
	t.Helper()
	r := b.do(t, append([]string{"up", "-F", b.sshd.ConfigFile}, append(args, "host")...)...)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Empty(t, r.stdout)
	require.Len(t, r.messages(t), 1)
}

// down runs `gpg-bridge down`, which has nothing to say.
func (b *background) down(t *testing.T, args ...string) {
	t.Helper()
	r := b.do(t, append([]string{"down"}, args...)...)
	r.requireOK(t)
	require.Empty(t, r.stdout)
}

// status runs `gpg-bridge status --json`.
func (b *background) status(t *testing.T) []share.Status {
	t.Helper()
	r := b.do(t, "status", "--json")
	r.requireOK(t)
	var all []share.Status
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &all), "%s", r.stdout)
	return all
}

// await waits until the status of the only bridge is as wanted.
func (b *background) await(t *testing.T, wanted func(share.Status) bool) share.Status {
	t.Helper()
	var last []share.Status
	eventually(t, func() bool {
		last = b.status(t)
		return len(last) == 1 && wanted(last[0])
	}, "the bridge is not as wanted: %+v", &last)
	return last[0]
}
