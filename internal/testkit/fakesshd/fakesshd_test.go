//go:build unix

package fakesshd_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func dial(t *testing.T, srv *fakesshd.Server) *ssh.Client {
	t.Helper()
	user := fakesshd.Start(t, srv)
	client, err := ssh.Dial("tcp", srv.Addr(), srv.ClientConfig(user))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = client.Wait()
	})
	return client
}

// openSSH returns the real ssh with the arguments that log in to srv.
func openSSH(t *testing.T, srv *fakesshd.Server, args ...string) *exec.Cmd {
	t.Helper()
	program := env.Tool(t, "ssh")
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	sshPublic, err := ssh.NewPublicKey(public)
	require.NoError(t, err)
	srv.AuthorizedKeys = append(srv.AuthorizedKeys, sshPublic)
	srv.Env = []string{"PATH=" + os.Getenv("PATH")}
	fakesshd.Start(t, srv)
	block, err := ssh.MarshalPrivateKey(key, "")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(block), 0o600))
	host, port, err := net.SplitHostPort(srv.Addr())
	require.NoError(t, err)
	known := "[" + host + "]:" + port + " " + string(ssh.MarshalAuthorizedKey(srv.HostKey.PublicKey()))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "known"), []byte(known), 0o600))
	return exec.Command(program, append([]string{
		"-F", "none", "-i", filepath.Join(dir, "key"), "-p", port, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "UserKnownHostsFile=" + filepath.Join(dir, "known"), "-o", "StrictHostKeyChecking=yes", "tester@" + host,
	}, args...)...)
}

// The real ssh works with this server.
func TestOpenSSHRunsACommand(t *testing.T) {
	srv := &fakesshd.Server{Banner: "be welcome\n"}
	cmd := openSSH(t, srv, "cat; echo err >&2; exit 7")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("in"), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.Equal(t, "in", stdout.String())
	require.Contains(t, stderr.String(), "be welcome")
	require.Contains(t, stderr.String(), "err\n")
}

func TestOpenSSHHasATerminal(t *testing.T) {
	cmd := openSSH(t, &fakesshd.Server{}, "-tt", "test -t 0 && echo a terminal")
	got, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "a terminal\r\n", string(got))
}

func TestOpenSSHForwardsASocket(t *testing.T) {
	dir := env.ShortDir(t)
	local, remote := filepath.Join(dir, "L"), filepath.Join(dir, "R")
	listener, err := net.Listen("unix", local)
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	cmd := openSSH(t, &fakesshd.Server{}, "-N", "-o", "ExitOnForwardFailure=yes", "-R", remote+":"+local)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var conn net.Conn
	require.Eventually(t, func() bool {
		conn, err = net.Dial("unix", remote)
		return err == nil
	}, patience, time.Millisecond)
	defer conn.Close()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestAnotherKeyIsRefused(t *testing.T) {
	srv := &fakesshd.Server{}
	fakesshd.Start(t, srv)
	stranger, err := fakesshd.NewSigner()
	require.NoError(t, err)
	_, err = ssh.Dial("tcp", srv.Addr(), srv.ClientConfig(stranger))
	require.ErrorContains(t, err, "unable to authenticate")
}

func TestForwardFollowsSSHD(t *testing.T) {
	forward := func(client *ssh.Client, request, path string) bool {
		ok, _, err := client.SendRequest(request, true, ssh.Marshal(struct{ Path string }{path}))
		require.NoError(t, err)
		return ok
	}
	const open, cancel = "streamlocal-forward@openssh.com", "cancel-streamlocal-forward@openssh.com"
	dir := env.ShortDir(t)
	path := filepath.Join(dir, "S")
	client := dial(t, &fakesshd.Server{})
	require.False(t, forward(client, open, "relative"))
	require.False(t, forward(client, open, filepath.Join(dir, "no", "S")))
	require.False(t, forward(client, open, filepath.Join(dir, strings.Repeat("x", 107-len(dir)))), "108 bytes")
	require.True(t, forward(client, open, filepath.Join(dir, strings.Repeat("x", 106-len(dir)))), "107 bytes")
	require.False(t, forward(client, cancel, path))
	require.True(t, forward(client, open, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.True(t, forward(client, cancel, path))
	require.FileExists(t, path)
	require.False(t, forward(client, open, path), "the file is still there")
	require.True(t, forward(dial(t, &fakesshd.Server{StreamLocalBindUnlink: true}), open, path))
}

func TestUnknownRequestsAreAnswered(t *testing.T) {
	client := dial(t, &fakesshd.Server{})
	ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
	require.NoError(t, err)
	require.False(t, ok)
	_, _, err = client.OpenChannel("nonsense", nil)
	var refused *ssh.OpenChannelError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ssh.UnknownChannelType, refused.Reason)
}

func TestHandlersCanBeReplaced(t *testing.T) {
	client := dial(t, &fakesshd.Server{RequestHandlers: map[string]fakesshd.RequestHandler{
		"greet": func(_ *fakesshd.Conn, req *ssh.Request) (bool, []byte) {
			return true, append([]byte("hello "), req.Payload...)
		},
	}})
	ok, payload, err := client.SendRequest("greet", true, []byte("you"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "hello you", string(payload))
}

func TestSessionsHaveTheServersEnvironment(t *testing.T) {
	client := dial(t, &fakesshd.Server{Env: []string{"HOME=/nowhere", "GNUPGHOME=/nowhere/g"}, Dir: "/"})
	session, err := client.NewSession()
	require.NoError(t, err)
	require.NoError(t, session.Setenv("EXTRA", "x"))
	got, err := session.Output("echo $HOME $GNUPGHOME $EXTRA $PWD")
	require.NoError(t, err)
	require.Equal(t, "/nowhere /nowhere/g x /\n", string(got))
}

func TestSignalReachesTheCommand(t *testing.T) {
	client := dial(t, &fakesshd.Server{})
	session, err := client.NewSession()
	require.NoError(t, err)
	stdout, err := session.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, session.Start("echo ready; exec sleep 1000"))
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	require.NoError(t, err)
	require.NoError(t, session.Signal(ssh.SIGTERM))
	var exit *ssh.ExitError
	require.ErrorAs(t, session.Wait(), &exit)
	require.Equal(t, "TERM", exit.Signal())
}

// Close leaves nothing running, not even a process that ignores signals.
func TestCloseEndsWhatRuns(t *testing.T) {
	for name, command := range map[string]string{
		"asleep": "echo $$; exec sleep 1000",
		"deaf":   "trap '' HUP TERM; echo $$; while :; do sleep 1000; done",
	} {
		t.Run(name, func(t *testing.T) {
			srv := &fakesshd.Server{}
			client := dial(t, srv)
			session, err := client.NewSession()
			require.NoError(t, err)
			stdout, err := session.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, session.Start(command))
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			require.NoError(t, srv.Close())
			require.NoError(t, srv.Close())
			require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		})
	}
}
