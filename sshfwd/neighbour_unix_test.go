//go:build linux || darwin

package sshfwd

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
)

// The agent at SSH_AUTH_SOCK may be another user's: after an agent has ended, anybody may
// create its /tmp/ssh-… anew. Its signatures do no harm, but it is given no key.
func TestAddKeysToAgentOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: nobody else can be played")
	}
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	socket := filepath.Join(dir, "agent")
	cmd := exec.Command(env.Tool(t, "ssh-agent"), "-D", "-a", socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n') // it listens
	require.NoError(t, err)

	key := sshkeys.Keygen(t, t.TempDir(), "key", "-t", "ed25519")
	config := authConfig(t, serverFor(t, key+".pub"), []string{key}, "AddKeysToAgent=yes", "IdentityAgent="+socket)
	requireLogin(t, config, nil)
	listed, _ := sshAdd(t, socket, "-L")
	require.NotContains(t, listed, strings.Fields(sshkeys.PublicLine(t, key+".pub"))[1])
	require.Contains(t, listed, "no identities")
}
