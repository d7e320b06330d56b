package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// An ownAccount is a user with a key and an agent who connects to their own
// account: the same user, the same home.
type ownAccount struct {
	*sshd.Account
	dir string // of the agent's socket
	pid string // of the agent
}

func newOwnAccount(t *testing.T, config sshd.AccountConfig) *ownAccount {
	t.Helper()
	t.Parallel()
	a := &ownAccount{Account: sshd.NewAccount(t, config)}
	server := sshd.Start(t, sshd.Config{Account: a.Account})
	for name, file := range map[string]string{"key": server.ClientKeyFile, "known_hosts": server.KnownHosts, "config": server.ConfigFile} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.NewReplacer(server.ClientKeyFile, a.Path("key"), server.KnownHosts, a.Path("known_hosts")).Replace(string(data))
		a.WriteFile(t, name, []byte(text), 0o600)
	}
	a.Mkdir(t, ".gnupg")
	a.Run(t, "gpg --batch --passphrase '' --quick-generate-key '"+userID+"' ed25519 sign never 2>&1")
	a.pid = a.agentPID(t)
	a.dir = filepath.Dir(strings.TrimSpace(a.Run(t, "gpgconf --list-dirs agent-socket")))
	return a
}

func (a *ownAccount) agentPID(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(a.Run(t, "gpg-connect-agent --no-autostart 'GETINFO pid' /bye | sed -n 's/^D //p'"))
}

// bridge runs gpg-bridge ssh as the account.
func (a *ownAccount) bridge(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.Command(program, append([]string{"ssh", "-F", a.Path("config")}, args...)...)
	as := a.Command(program)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = as.Dir, as.SysProcAttr, append(as.Env, "GNUPGHOME=", "XDG_RUNTIME_DIR=")
	return launchAs(t, cmd, gpghome.ForTest(t), nil).wait(t)
}

// Who connects to their own account keeps their agent: nothing is stopped, removed
// or forwarded to itself, and the session works as without a bridge.
func TestOwnAccount(t *testing.T) {
	for name, config := range map[string]sshd.AccountConfig{
		"sockets in the home": {}, "sockets in the runtime directory": {RuntimeDir: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newOwnAccount(t, config)
			for _, more := range [][]string{nil, {"--takeover"}} {
				r := a.bridge(t, append(more, "host", "echo hello | gpg --batch --no-tty --clearsign | gpg --verify && echo on")...)
				require.Zero(t, r.code, "%s", r.stderr)
				require.Equal(t, "on\n", r.stdout)
				require.Contains(t, r.stderr, "your own local agent's")
				require.Contains(t, r.stderr, "GNUPGHOME of its own")

				r = a.bridge(t, append(more, "-N", "host")...)
				require.Equal(t, 255, r.code)
				r.requireTwoLines(t, "your own local agent's", "GNUPGHOME of its own")
			}
			require.Equal(t, a.pid, a.agentPID(t), "the agent is the one that ran before")
			left, err := filepath.Glob(filepath.Join(a.dir, ".gpg-bridge-*"))
			require.NoError(t, err)
			require.Empty(t, left, "the token is gone")
		})
	}
}
