package config

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// A Match exec may leave a process behind that keeps ssh's stderr open, as for ssh.
func TestMatchExecLeavesAProcessBehind(t *testing.T) {
	env.Tool(t, "ssh")
	if runtime.GOOS == "windows" {
		t.Skip("its commands are for a Unix shell")
	}
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "config"), filepath.Join(dir, "fifo")
	left := "read x <" + fifo + " &" // until the FIFO is opened here
	text := "Match exec \"mkfifo " + fifo + "; { " + left + " }; echo said >&2\"\n User left\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := Resolve(t.Context(), To("host", "-F", file))
	require.NoError(t, err)
	require.Equal(t, "left", c.User)
	require.Equal(t, []string{"said"}, c.Warnings)
	require.NoError(t, os.WriteFile(fifo, []byte("end\n"), 0o600))
}
