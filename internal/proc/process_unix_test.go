//go:build unix

package proc

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A process's end is seen, also where the system does not tell of it.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	require.True(t, isRunning(1))
	for name, open := range map[string]func(pid int) *Process{
		"opened": OpenProcess,
		"polled": func(pid int) *Process { return &Process{pid: pid} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(env.Tool(t, "sleep"), "60")
			require.NoError(t, cmd.Start())
			process := open(cmd.Process.Pid)
			defer process.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.False(t, process.Wait(ctx))
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			require.True(t, process.Wait(t.Context()))
		})
	}
}

func TestParentName(t *testing.T) {
	require.NotEmpty(t, ParentName())
}
