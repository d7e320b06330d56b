package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wakings is how often the threads of a process have begun to wait for something.
func wakings(t *testing.T, pid int) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/status")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		value, _, _ := strings.Cut(rest, "\n")
		count, err := strconv.Atoi(strings.TrimSpace(value))
		require.NoError(t, err)
		n += count
	}
	return n
}

// A bridge that nobody uses lets the machine sleep: there are four seconds in which it
// wakes up less than twice a second.
func TestIdleBridgeSleeps(t *testing.T) {
	b := stage{}.set(t).background(t)
	b.importKey(t)
	b.up(t)
	pid := b.pids()[0]
	eventually(t, func() bool {
		before := wakings(t, pid)
		time.Sleep(4 * time.Second)
		return wakings(t, pid)-before < 8
	}, "it wakes up all the time")
}
