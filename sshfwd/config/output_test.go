package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// With a ProxyJump, %C depends on ssh's version.
func TestLocalCommandHash(t *testing.T) {
	ssh := env.Tool(t, "ssh")
	flags := []string{"-F", "none", "-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo %%C %C %T", "-J", "jump"}
	c, err := Resolve(t.Context(), To("host", flags...))
	require.NoError(t, err)
	line, err := c.LocalCommandLine()
	require.NoError(t, err)
	out, err := exec.Command(ssh, append(flags, "-G", "-o", "ControlPath=/%C", "host")...).Output()
	require.NoError(t, err)
	hash := parseSettings(out).get("controlpath")[1:]
	require.Len(t, hash, 40)
	require.Equal(t, "echo %C "+hash+" NONE", line)
}

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
