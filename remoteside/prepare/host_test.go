package prepare_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// remote is a real account behind a real sshd. It is a remoteside.Host, by way
// of the real ssh.
type remote struct {
	*sshd.Account
	server *sshd.Server
	runs   []string // the commands that were run
}

func newRemote(t *testing.T, account sshd.AccountConfig, config sshd.Config) *remote {
	t.Helper()
	env.Tool(t, "gpgconf")
	r := &remote{Account: sshd.NewAccount(t, account)}
	config.Account = r.Account
	r.server = sshd.Start(t, config)
	return r
}

func (r *remote) Run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) error {
	r.runs = append(r.runs, command)
	cmd := r.server.SSH("host", command)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	w, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	// Ends with the Read under way, as a Host's does.
	go func() {
		_, _ = io.Copy(w, stdin)
		_ = w.Close()
	}()
	return cmd.Wait()
}

// prepare prepares, and waits for the end of the import.
func (r *remote) prepare(t *testing.T, options prepare.Options) *prepare.Preparation {
	t.Helper()
	p, err := prepare.Prepare(t.Context(), r, options)
	require.NoError(t, err)
	_, err = p.Wait()
	require.NoError(t, err)
	return p
}

// socket is where the account's gpg looks.
func (r *remote) socket() string { return r.Path(".gnupg/S.gpg-agent") }

// listen makes a listener at the account's socket, which belongs to the test.
func (r *remote) listen(t *testing.T) *net.UnixListener {
	t.Helper()
	r.Mkdir(t, ".gnupg")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket()})
	require.NoError(t, err)
	require.NoError(t, os.Chown(r.socket(), r.UID, r.GID))
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// startAgent starts the account's own agent and gives its process id.
func (r *remote) startAgent(t *testing.T) string {
	t.Helper()
	r.Mkdir(t, ".gnupg")
	r.Run0(t, "gpgconf --launch gpg-agent")
	return r.agentPID(t)
}

func (r *remote) agentPID(t *testing.T) string {
	t.Helper()
	return r.Run0(t, "gpg-connect-agent --no-autostart 'GETINFO pid' /bye | sed -n 's/^D //p'")
}

// Run0 runs a script as the account, without sshd, and gives the output trimmed.
func (r *remote) Run0(t *testing.T, script string) string {
	t.Helper()
	return strings.TrimSpace(r.Account.Run(t, script))
}

// forward keeps a real `ssh -N -R` to a local socket, and waits until it
// answers on the account's side.
func (r *remote) forward(t *testing.T, local string) {
	t.Helper()
	r.Mkdir(t, ".gnupg")
	start(t, r.server.SSH("-N", "-o", "ExitOnForwardFailure=yes", "-R", r.socket()+":"+local, "host"))
	require.Eventually(t, func() bool { return r.answers("GETINFO version") }, patience, 10*time.Millisecond)
}

// answers tells whether something that speaks Assuan answers at the socket.
func (r *remote) answers(command string) bool {
	cmd := r.Command("gpg-connect-agent", "--no-autostart", "-S", r.socket(), command, "/bye")
	out, _ := cmd.Output()
	return bytes.Contains(out, []byte("OK")) || bytes.Contains(out, []byte("ERR"))
}

// start runs a program until the test ends. Its output is dropped.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// home is a local GnuPG home with one key.
func home(t *testing.T) (*gpghome.Home, gpghome.Key) {
	t.Helper()
	h := gpghome.ForTest(t)
	key, err := h.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>"})
	require.NoError(t, err)
	return h, key
}

func extraSocket(t *testing.T, h *gpghome.Home) string {
	t.Helper()
	path, err := h.ExtraSocket(t.Context())
	require.NoError(t, err)
	return path
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(filepath.Clean(path))
	require.NoError(t, err)
	return info.Mode().Perm()
}
