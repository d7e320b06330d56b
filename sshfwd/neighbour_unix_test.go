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

	"gpg-bridge/internal/testenv"
)

// known_hosts may be a link, as those have it who keep such files in a
// repository: like ssh, which opens it by its name, we write what it leads to,
// and leave link, owner and mode as they are.
func TestAppendKnownHostThroughALink(t *testing.T) {
	for name, c := range map[string]struct {
		content *string
		mode    os.FileMode
	}{
		"file":      {new("# mine\n"), 0o644},
		"read-only": {new(""), 0o600},
		"dangling":  {nil, 0o600},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "dotfiles-known_hosts")
			if c.content != nil {
				require.NoError(t, os.WriteFile(target, []byte(*c.content), c.mode))
			}
			link := filepath.Join(t.TempDir(), "known_hosts")
			require.NoError(t, os.Symlink(target, link))
			key := newKey(t)
			require.NoError(t, appendKnownHost(t.Context(), link, "h", key, false))
			info, err := os.Lstat(link)
			require.NoError(t, err)
			require.Equal(t, os.ModeSymlink, info.Mode().Type())
			info, err = os.Stat(target)
			require.NoError(t, err)
			require.Equal(t, c.mode, info.Mode().Perm())
			lines, _ := readKnownHosts([]string{target})
			v, _ := check(keysFor(lines, "h"), key)
			require.Equal(t, hostKnown, v)
		})
	}
}

// A file and directory that we make are the user's alone.
func TestAppendKnownHostMakesPrivateFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".ssh", "known_hosts")
	require.NoError(t, appendKnownHost(t.Context(), file, "h", newKey(t), false))
	for path, mode := range map[string]os.FileMode{filepath.Dir(file): 0o700, file: 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
}

// The agent that answers where SSH_AUTH_SOCK points to may be another user's:
// /tmp/ssh-… of an agent that has ended is free for all. Its signatures do no
// harm; it gets no key.
func TestAddKeysToAgentOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "not root: nobody else can be played")
	}
	dir := testenv.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	socket := filepath.Join(dir, "agent")
	cmd := exec.Command(testenv.Tool(t, "ssh-agent"), "-D", "-a", socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n') // it listens
	require.NoError(t, err)

	key := keygen(t, t.TempDir(), "key", "-t", "ed25519")
	config := authConfig(t, serverFor(t, key+".pub"), []string{key}, "AddKeysToAgent=yes", "IdentityAgent="+socket)
	requireLogin(t, config, nil)
	listed, _ := sshAdd(t, socket, "-L")
	require.NotContains(t, listed, strings.Fields(publicLine(t, key+".pub"))[1])
	require.Contains(t, listed, "no identities")
}
