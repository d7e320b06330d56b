package sshfwd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// startDropbear runs a dropbear with an Ed25519 host key only: its child
// crashes where a client asks for RSA first (2022.83). It gives an ssh_config
// whose `Host host` it is.
func startDropbear(t *testing.T) (configFile string) {
	t.Helper()
	dropbear, dropbearkey := env.Tool(t, "dropbear"), env.Tool(t, "dropbearkey")
	account := sshd.NewAccount(t, sshd.AccountConfig{Shell: "sh"})
	dir := env.ShortDir(t)
	hostKey := filepath.Join(dir, "host")
	out, err := exec.Command(dropbearkey, "-t", "ed25519", "-f", hostKey).CombinedOutput()
	require.NoError(t, err, string(out))
	client := sshkeys.Keygen(t, dir, "client", "-t", "ed25519")
	account.WriteFile(t, ".ssh/authorized_keys", []byte(sshkeys.PublicLine(t, client+".pub")+"\n"), 0o600)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().(*net.TCPAddr)
	require.NoError(t, l.Close())
	cmd := exec.Command(dropbear, "-F", "-E", "-s", "-r", hostKey, "-P", filepath.Join(dir, "pid"), "-p", addr.String())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	configFile = filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(configFile, fmt.Appendf(nil, "Host host\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s\n"+
		" UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking accept-new\n IdentityAgent none\n IdentitiesOnly yes\n",
		addr.Port, account.Name, client, filepath.Join(dir, "known_hosts")), 0o600))
	return configFile
}

func TestDropbear(t *testing.T) {
	file := startDropbear(t)
	resolved, err := config.Resolve(t.Context(), config.To("host", "-F", file))
	require.NoError(t, err)
	requireLogin(t, resolved, nil) // not known yet
	requireLogin(t, resolved, nil) // known by now

	client, err := Dial(dialContext(t), resolved, DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.ForwardUnix(testContext(t), shortSocketPath(t), serveEcho)
	var refused *link.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Hint(), "dropbear")
	_, err = client.DialUnix(testContext(t), shortSocketPath(t))
	var unsupported *link.DialError
	require.ErrorAs(t, err, &unsupported)
	require.True(t, unsupported.Unsupported)
}

// dropbear as a jump host: it has direct-tcpip.
func TestJumpOverDropbear(t *testing.T) {
	file := startDropbear(t)
	srv := sshd.Start(t, sshd.Config{})
	more := fmt.Sprintf("Host web\n HostName 127.0.0.1\n Port %d\n User %s\n IdentityFile %s\n UserKnownHostsFile %s\n ProxyJump host\n",
		srv.Port, srv.User, srv.ClientKeyFile, srv.KnownHosts)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, more...), 0o600))
	resolved, err := config.Resolve(t.Context(), config.To("web", "-F", file))
	require.NoError(t, err)
	requireLogin(t, resolved, nil)
}
