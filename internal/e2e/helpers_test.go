package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

const userID = "Alice <alice@example.org>"

// A scene is a laptop with a key and a host without.
type scene struct {
	laptop *gpghome.Home
	key    gpghome.Key
	host   *sshd.Account
	sshd   *sshd.Server
}

// A stage says what is particular about a scene; the zero value is an ed25519
// key, bash and the defaults of sshd.
type stage struct {
	key     gpghome.KeySpec
	account sshd.AccountConfig
	sshd    sshd.Config
}

// set makes a scene that the test has for itself, and lets it run beside the
// others.
func (s stage) set(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	s.key.UserID = userID
	host := sshd.NewAccount(t, s.account)
	laptop := gpghome.ForTest(t)
	key, err := laptop.GenerateKey(t.Context(), s.key)
	require.NoError(t, err)
	s.sshd.Account = host
	return &scene{laptop: laptop, key: key, host: host, sshd: sshd.Start(t, s.sshd)}
}

// args is the command line of gpg-bridge ssh for this host.
func (s *scene) args(args ...string) []string {
	return append([]string{"ssh", "-F", s.sshd.ConfigFile}, args...)
}

// run runs `gpg-bridge ssh` to its end, without input.
func (s *scene) run(t testing.TB, args ...string) result {
	t.Helper()
	return launch(t, s.laptop, nil, s.args(args...)...).wait(t)
}

// start starts `gpg-bridge ssh` with no end of input to come.
func (s *scene) start(t testing.TB, args ...string) *process {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return launch(t, s.laptop, r, s.args(args...)...)
}

// serving is what `gpg-bridge ssh -N` says when gpg on the host can sign.
const serving = "gpg-bridge: your agent serves gpg on host at "

// bridge starts `gpg-bridge ssh -N` and returns when it serves.
func (s *scene) bridge(t testing.TB, args ...string) *process {
	t.Helper()
	p := s.start(t, append(args, "-N", "host")...)
	p.waitFor(t, &p.stderr, serving)
	return p
}

// end ends a bridge with SIGTERM; it must have had nothing to complain of.
func (s *scene) end(t testing.TB, p *process) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	r := p.wait(t)
	require.Zero(t, r.code, "%s", r.stderr)
	require.Equal(t, serving+s.socket(t)+"\n", r.stderr)
}

// socket is where gpg on the host looks for its agent.
func (s *scene) socket(t testing.TB) string {
	t.Helper()
	return strings.TrimSpace(s.host.Run(t, "gpgconf --list-dirs agent-socket"))
}

// onHost runs a program of the account's, beside any SSH connection.
func (s *scene) onHost(stdin io.Reader, name string, args ...string) (stdout, stderr []byte, err error) {
	cmd := s.host.Command(name, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	err = runWithin(cmd, patience)
	return out.Bytes(), errOut.Bytes(), err
}

// runWithin kills the program when it has not ended within the limit, so that
// an agent that hangs does not hang the test.
func runWithin(cmd *exec.Cmd, limit time.Duration) error {
	cmd.WaitDelay = time.Second // an agent it started may hold its outputs
	if err := cmd.Start(); err != nil {
		return err
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	return cmd.Wait()
}

// sign signs with the host's gpg as it is, and verifies on the laptop.
func (s *scene) sign(t testing.TB) {
	t.Helper()
	signature, said, err := s.onHost(strings.NewReader("hello\n"), "gpg", "--batch", "--no-tty", "-u", s.key.Fingerprint, "-b", "-o", "-")
	require.NoError(t, err, "%s", said)
	s.verify(t, signature, "hello\n")
}

// signFails signs with the host's gpg, which cannot, and returns what it said.
func (s *scene) signFails(t testing.TB) string {
	t.Helper()
	_, said, err := s.onHost(strings.NewReader("hello\n"), "gpg", "--batch", "--no-tty", "-u", s.key.Fingerprint, "-b", "-o", "-")
	require.Error(t, err)
	return string(said)
}

// verify verifies a detached signature on the laptop.
func (s *scene) verify(t testing.TB, signature []byte, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signature")
	require.NoError(t, os.WriteFile(file, signature, 0o600))
	status, _, err := s.laptop.Gpg(t.Context(), strings.NewReader(text), "--status-fd", "1", "--verify", file, "-")
	require.NoError(t, err)
	require.Contains(t, string(status), "[GNUPG:] VALIDSIG "+s.key.Fingerprint)
}

// signing is a command for any login shell that signs "hello" with the scene's
// key, and prints the signature.
func (s *scene) signing() string {
	return "echo hello | gpg --batch --no-tty -u " + s.key.Fingerprint + " -b -o -"
}

// runSigning signs over gpg-bridge ssh and verifies on the laptop.
func (s *scene) runSigning(t testing.TB, args ...string) result {
	t.Helper()
	r := s.run(t, append(args, "host", s.signing())...)
	require.Zero(t, r.code, "%s", r.stderr)
	s.verify(t, []byte(r.stdout), "hello\n")
	return r
}

// agents are the gpg-agents that the account runs.
func (s *scene) agents() []int {
	var found []int
	for _, pid := range s.host.Processes() {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.TrimSpace(string(name)) == "gpg-agent" {
			found = append(found, pid)
		}
	}
	return found
}

// requireNoSocket: nothing was left at the path on the host.
func (s *scene) requireNoSocket(t testing.TB) {
	t.Helper()
	_, err := os.Lstat(s.socket(t))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// requireSocket: something is at the path on the host.
func (s *scene) requireSocket(t testing.TB) {
	t.Helper()
	_, err := os.Lstat(s.socket(t))
	require.NoError(t, err)
}

// importKey gives the host the public key, so that the bridge has none to bring.
func (s *scene) importKey(t testing.TB) {
	t.Helper()
	key, _, err := s.laptop.Gpg(t.Context(), nil, "--export", s.key.Fingerprint)
	require.NoError(t, err)
	_, said, err := s.onHost(bytes.NewReader(key), "gpg", "--batch", "--no-tty", "--no-autostart", "--import")
	require.NoError(t, err, "%s", said)
}

// publicKeys are the primary fingerprints of the host's keyring.
func (s *scene) publicKeys(t testing.TB) []string {
	t.Helper()
	list, said, err := s.onHost(nil, "gpg", "--batch", "--no-autostart", "--with-colons", "--list-keys")
	require.NoError(t, err, "%s", said)
	var keys []string
	primary := false
	for line := range strings.Lines(string(list)) {
		field := strings.Split(line, ":")
		if field[0] == "fpr" && primary {
			keys = append(keys, field[9])
		}
		primary = field[0] == "pub"
	}
	return keys
}

// freePort is one on which nobody listens.
func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

// extraSocket is the laptop's agent, started.
func (s *scene) extraSocket(t testing.TB) string {
	t.Helper()
	require.NoError(t, s.laptop.StartAgent(t.Context()))
	path, err := s.laptop.ExtraSocket(t.Context())
	require.NoError(t, err)
	return path
}
