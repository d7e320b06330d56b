//go:build linux

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// newSSHAgent runs an ssh-agent with a key and returns its socket.
func newSSHAgent(t *testing.T, key string) string {
	t.Helper()
	socket := filepath.Join(env.ShortDir(t), "agent")
	cmd := exec.Command(env.Tool(t, "ssh-agent"), "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n') // from now on it listens
	require.NoError(t, err)
	add := exec.Command(env.Tool(t, "ssh-add"), "-q", key)
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	said, err := add.CombinedOutput()
	require.NoError(t, err, string(said))
	return socket
}

// The host sees an agent, and whose, as with ssh.
func TestForwardAgentEqualsOpenSSH(t *testing.T) {
	h := newHost(t)
	socket := newSSHAgent(t, h.srv.ClientKeyFile)
	for _, c := range []struct {
		name string
		args []string
		sees bool
	}{
		{"nothing", nil, false},
		{"-A", []string{"-A"}, true},
		{"-A -a", []string{"-A", "-a"}, false},
		{"-a -A", []string{"-a", "-A"}, true},
		{"-A over -o", []string{"-A", "-o", "ForwardAgent=no"}, true},
		{"-a over -o", []string{"-a", "-o", "ForwardAgent=yes"}, false},
		{"a path", []string{"-o", "ForwardAgent=" + socket}, true},
		{"a variable", []string{"-o", "ForwardAgent=$GB_AGENT"}, true},
		{"a path that is none", []string{"-o", "ForwardAgent=" + socket + "2"}, false},
		{"no agent", []string{"-A", "-o", "IdentityAgent=none"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := func(ours bool) (string, error) {
				args := c.args
				if c.name != "no agent" {
					args = append([]string{"-o", "IdentityAgent=" + socket}, args...)
				}
				cmd := h.command(t, ours, append(args, "host", "test -n \"$SSH_AUTH_SOCK\" && ssh-add -l")...)
				cmd.Env = append(cmd.Env, "GB_AGENT="+socket)
				out, err := cmd.Output()
				return string(out), err
			}
			theirs, theirError := run(false)
			ours, ourError := run(true)
			require.Equal(t, c.sees, theirError == nil)
			require.Equal(t, theirs, ours)
			require.Equal(t, c.sees, ourError == nil)
		})
	}
}
