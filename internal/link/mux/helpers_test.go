//go:build unix

package mux

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
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
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/private"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
)

const (
	// within bounds the wait for something that must happen.
	within = 30 * time.Second
	tick   = 5 * time.Millisecond
)

func eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(tick) {
		require.True(t, time.Now().Before(deadline), "it did not happen")
	}
}

// A sharing is an ssh that shares its connection.
type sharing struct {
	ssh   func(args ...string) *exec.Cmd
	path  string // of the control socket
	dir   *private.Dir
	cmd   *exec.Cmd
	stdin io.WriteCloser
	said  *bytes.Buffer
	ended chan struct{} // closed when Wait has returned
}

// share starts an ssh that shares its connection, with a command or -N.
func share(t testing.TB, server *sshd.Server, command ...string) *sharing {
	t.Helper()
	return shareBy(t, server.SSH, command...)
}

func shareBy(t testing.TB, ssh func(args ...string) *exec.Cmd, command ...string) *sharing {
	t.Helper()
	base := env.ShortDir(t)
	dir, err := private.Open(filepath.Join(base, "run"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	s := &sharing{ssh: ssh, path: filepath.Join(base, "control"), dir: dir}
	s.start(t, command...)
	return s
}

func (s *sharing) start(t testing.TB, command ...string) {
	t.Helper()
	args := append([]string{"-M", "-S", s.path, "host"}, command...)
	if len(command) == 0 {
		args = append([]string{"-N"}, args...)
	}
	s.cmd, s.ended = s.ssh(args...), make(chan struct{})
	s.said = new(bytes.Buffer)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	var err error
	s.stdin, err = s.cmd.StdinPipe()
	require.NoError(t, err)
	s.cmd.WaitDelay = time.Second
	require.NoError(t, s.cmd.Start())
	ended := s.ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(s.cmd)
	t.Cleanup(func() { s.kill(syscall.SIGTERM) })
	eventually(t, func() bool {
		shared, err := Open(t.Context(), s.options())
		if err == nil {
			_ = shared.Close()
		}
		return err == nil
	})
}

func (s *sharing) kill(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	for {
		_ = s.cmd.Process.Signal(signal)
		select {
		case <-s.ended:
			return
		case <-time.After(100 * time.Millisecond): // ssh loses a signal that comes just before it polls
		}
	}
}

func (s *sharing) options() Options {
	return Options{ControlPath: s.path, Dir: s.dir, Name: "0123456789abcdef"}
}

func (s *sharing) open(t testing.TB) *Link {
	t.Helper()
	shared, err := Open(t.Context(), s.options())
	require.NoError(t, err)
	t.Cleanup(func() { _ = shared.Close() })
	return shared
}

// requireAlive requires that the user's ssh still runs and works.
func (s *sharing) requireAlive(t testing.TB) {
	t.Helper()
	select {
	case <-s.ended:
		t.Fatalf("the master has ended: %s", s.said.String())
	default:
	}
	shared := s.open(t)
	var out bytes.Buffer
	require.NoError(t, shared.Run(t.Context(), "echo alive", nil, &out, nil))
	require.Equal(t, "alive\n", out.String())
	require.NoError(t, shared.Close())
}

// requireTidy requires that nothing of ours is left in the directory.
func (s *sharing) requireTidy(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(s.dir.Path())
	require.NoError(t, err)
	require.Empty(t, entries)
}

// echo answers with what comes, in upper case.
func echo(_ context.Context, conn link.Conn) {
	text := make([]byte, 100)
	n, _ := conn.Read(text)
	_, _ = conn.Write(bytes.ToUpper(text[:n]))
}

// remotePath is a path on the host, which is this machine.
func remotePath(t testing.TB) string { return filepath.Join(env.ShortDir(t), "S") }

// call connects to a socket as a program on the host would.
func call(path, text string) (string, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(within))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

func requireEcho(t testing.TB, path string) {
	t.Helper()
	answer, err := call(path, "hello")
	require.NoError(t, err)
	require.Equal(t, "HELLO", answer)
}

// descriptors returns how many a process has open.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Skip("no /proc")
	}
	return len(entries)
}

func logins(server *sshd.Server) int {
	return strings.Count(server.Log(), "Accepted publickey for ")
}

// holding returns an ssh to a server that answers no global request until hold is closed.
func holding(t testing.TB, hold <-chan struct{}) func(args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	key := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(block), 0o600))
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	server := &fakesshd.Server{AuthorizedKeys: []ssh.PublicKey{signer.PublicKey()}, Faults: fakesshd.Faults{HoldReplies: hold}}
	fakesshd.Start(t, server)
	host, port, err := net.SplitHostPort(server.Addr())
	require.NoError(t, err)
	known := filepath.Join(dir, "known_hosts")
	line := fmt.Appendf(nil, "[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(server.HostKey.PublicKey()))
	require.NoError(t, os.WriteFile(known, line, 0o600))
	config := filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `Host host
  HostName %s
  Port %s
  User tester
  IdentityFile %s
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile %s
  GlobalKnownHostsFile /dev/null
`, host, port, key, known), 0o600))
	program := env.Tool(t, "ssh")
	return func(args ...string) *exec.Cmd {
		return exec.Command(program, append([]string{"-F", config}, args...)...)
	}
}

// askingMaster is a master that asks its user before it shares, and is told no.
func askingMaster(t testing.TB) *sharing {
	t.Helper()
	server := sshd.Start(t, sshd.Config{})
	return shareBy(t, func(args ...string) *exec.Cmd {
		cmd := server.SSH(append([]string{"-M"}, args...)...) // a second -M is ControlMaster ask
		cmd.Env = append(os.Environ(), "SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0")
		return cmd
	})
}
