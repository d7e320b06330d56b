package pinentry

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/fakesshd"
)

// TestReaders: only an ssh in the foreground of the terminal that it reads counts.
func TestReaders(t *testing.T) {
	t.Parallel()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	text, err := os.ReadFile(sleep)
	require.NoError(t, err)
	ssh := filepath.Join(t.TempDir(), "ssh")
	syscall.ForkLock.RLock() // no child inherits the file while it is open
	err = os.WriteFile(ssh, text, 0o700)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	for _, c := range []struct {
		name, script string
		want         bool
	}{
		{"in the foreground", `exec "$0" 600`, true},
		{"under a shell", `"$0" 600; :`, true},
		{"with a pipe", `: | "$0" 600; :`, false},
		{"behind", `set -m; "$0" 600 & sleep 600`, false},
		{"another program", `exec sleep 600`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			master, slave, err := fakesshd.OpenPTY()
			require.NoError(t, err)
			defer master.Close()
			defer slave.Close()
			cmd := exec.Command("/bin/bash", "-c", c.script, ssh)
			cmd.Stdin = slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			require.NoError(t, cmd.Start())
			defer func() { // closing the terminal's other end ends its programs
				_ = master.Close()
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			device := DeviceOf(slave)
			require.NotZero(t, device)
			if c.want {
				require.Eventually(t, func() bool {
					readers, err := Readers()
					reader := ReaderAt(device, readers)
					return err == nil && reader != nil && reader.Name == "ssh" && reader.TerminalPath() == slave.Name()
				}, 20*time.Second, 10*time.Millisecond)
				return
			}
			require.Eventually(t, func() bool { return runs(device, "sleep") || runs(device, "ssh") }, 20*time.Second, 10*time.Millisecond)
			for range 5 {
				readers, err := Readers()
				require.NoError(t, err)
				require.Nil(t, ReaderAt(device, readers))
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// runs reports whether a program of that name has the terminal as its controlling one.
func runs(device uint64, name string) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		if stat, err := parseStat(strings.TrimSpace(string(text))); err == nil && stat.terminal == device && stat.name == name {
			return true
		}
	}
	return false
}

func TestDevice(t *testing.T) {
	require.Zero(t, Device("/no/such/terminal"))
	require.Zero(t, Device("/"))
	require.NotZero(t, Device("/dev/null"))
}
