package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"gpg-bridge/internal/testkit/env"
)

// TestMain also runs the bridge of the endurance run, in another process.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == serveArg {
		exitOn(serve(context.Background(), os.Args[2], os.Stdin, os.Stdout))
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// buildProgram builds gpg-bridge as its tests are built.
func buildProgram(t *testing.T) string {
	t.Helper()
	program := filepath.Join(env.ShortDir(t), "gpg-bridge")
	args := []string{"build", "-o", program}
	if raceDetector {
		args = append(args, "-race")
	}
	output, err := exec.Command("go", append(args, "gpg-bridge/cmd/gpg-bridge")...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return program
}

// A tenth of `make stress`, without OpenSSH beside it.
func TestCrowd(t *testing.T) {
	l := newLab(t.Context(), t)
	bridge := l.bridge(buildProgram(t))
	for _, o := range l.ordeals(fullLoad().scaled(0.1)) {
		if o.lasts {
			continue // TestGateServesEverybodyWhateverTheAgentCanHold does this in synctest's time
		}
		t.Run(strings.ReplaceAll(fmt.Sprintf(o.name, o.count), " ", "_"), func(t *testing.T) {
			got := l.undergo(t.Context(), bridge, o)
			require.Equal(t, got.of, got.ok, "%v", got.reasons())
		})
	}
}

// A hundredth of `make stress`: the race detector is slow.
func TestEndurance(t *testing.T) {
	if descriptors() == 0 {
		t.Skip("no /proc on this machine")
	}
	l := newLab(t.Context(), t)
	self, err := os.Executable()
	require.NoError(t, err)
	outcome, err := l.endure(t.Context(), []string{self, serveArg}, 1000, 8)
	require.NoError(t, err)
	require.Empty(t, outcome.complaints())
	require.NotZero(t, outcome.before.RSS)
}

// The signs of a leak are complained of.
func TestComplaints(t *testing.T) {
	flat := make([]float64, samples)
	for i := range flat {
		flat[i] = 20
	}
	held := holding{Goroutines: 10, Descriptors: 11, RSS: 20, Heap: 1}
	sound := outcome{sessions: longRun, before: held, after: held, heap1: 1, heap2: 1, rss: flat}
	require.Empty(t, sound.complaints())
	for name, spoil := range map[string]func(*outcome){
		"sessions":      func(o *outcome) { o.after.Sessions = 1 },
		"conversations": func(o *outcome) { o.after.Conversations = 1 },
		"goroutines":    func(o *outcome) { o.after.Goroutines++ },
		"descriptors":   func(o *outcome) { o.after.Descriptors++ },
		"heap":          func(o *outcome) { o.heap2 += 9 },
		"resident set": func(o *outcome) {
			o.rss = append(append([]float64(nil), flat[:90]...), 22, 22, 22, 22, 22, 22, 22, 22, 22, 22)
		},
	} {
		o := sound
		spoil(&o)
		require.Len(t, o.complaints(), 1, name)
		require.Contains(t, o.complaints()[0], name)
	}
}

// A client that gets a wrong answer does not count as served.
func TestTallyCountsWhatWasRight(t *testing.T) {
	l := newLab(t.Context(), t)
	l.socket = l.extra
	require.Equal(t, 3, l.visitors(t.Context(), 3).ok)
	l.version = "0.0.0"
	got := l.visitors(t.Context(), 3)
	require.Zero(t, got.ok)
	require.Contains(t, got.reasons()[0], "3 × ")
}
