//go:build linux || darwin

package agentside

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/private"
	"gpg-bridge/internal/testkit/env"
)

// A socket that another user has put where ours should be, as anybody can in
// /tmp, gets not a byte: neither named, nor by a link or a redirect.
func TestSocketOfAnotherIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: nobody else can be played")
	}
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	path := filepath.Join(dir, "S.gpg-agent.extra")
	received := filepath.Join(dir, "received")
	cmd := exec.Command(env.Tool(t, "socat"), "-d", "-d", "-u", "UNIX-LISTEN:"+path+",fork", "OPEN:"+received+",creat,append")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	notices := bufio.NewReader(stderr)
	for line := ""; !strings.Contains(line, "listening on"); {
		line, err = notices.ReadString('\n')
		require.NoError(t, err)
	}
	link := filepath.Join(env.ShortDir(t), "link")
	require.NoError(t, os.Symlink(path, link))
	redirect := writeSocketFile(t, "%Assuan%\nsocket="+path+"\n", 0o600)
	for _, named := range []string{path, link, redirect} {
		err := tryDial(t, &Locator{AgentSocket: named})
		refused := requireHint[*private.PeerError](t, err)
		require.Equal(t, 65534, refused.UID)
		require.Contains(t, requireHint[*SocketError](t, err).Hint(), "run gpg-bridge as that user")
	}
	data, _ := os.ReadFile(received)
	require.Empty(t, data)
}
