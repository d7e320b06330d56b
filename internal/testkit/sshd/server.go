package sshd

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gpg-bridge/internal/testkit/env"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second
	pollInterval = 5 * time.Millisecond
	bindAttempts = 5
)

// Config says what is special about a server. The zero value is a server for the user who runs
// the test, with sshd's defaults.
type Config struct {
	// Options are sshd_config(5) lines. They come before the server's own lines, and so
	// win, but from the first Match on they come after them. SetEnv lines are merged with
	// the server's own.
	Options []string
	// KeyOptions are the options of the client key in authorized_keys, such as
	// `restrict` or `command="echo no"` (sshd(8), AUTHORIZED_KEYS FILE FORMAT).
	KeyOptions string
	// Account is who logs in; nil is the user who runs the test.
	Account *Account
	// Addr is the address to listen on instead of 127.0.0.1. Inside are the words before
	// sshd's command line that run it in a network namespace with that address.
	Addr   string
	Inside []string
}

// Server is a running sshd.
type Server struct {
	Addr string // "127.0.0.1:PORT"
	Host string // "127.0.0.1"
	Port int
	User string

	HostKeyFile   string // the server's ed25519 key
	HostPublicKey string // its public half, "ssh-ed25519 AAAA…"
	ClientKeyFile string // an unencrypted ed25519 key which is let in
	KnownHosts    string // a known_hosts file with the server's entry
	ConfigFile    string // an ssh_config(5) whose `Host host` is this server

	t       testing.TB
	config  Config
	dir     string
	marker  string
	logFile string

	clientKey string // the public half of ClientKeyFile

	mu   sync.Mutex
	proc *process
}

// process is one run of sshd. Its goroutine waits for it and is joined by stop.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when Wait has returned
	wg   sync.WaitGroup
}

// Start runs a server until the test ends.
func Start(t testing.TB, config Config) *Server {
	t.Helper()
	env.Tool(t, "sshd")
	s := &Server{t: t, config: config, Host: cmp.Or(config.Addr, "127.0.0.1"), User: login(t, config.Account)}
	s.dir = env.ShortDir(t)
	s.marker = fmt.Sprintf("GPG_BRIDGE_SSHDTEST=%s", filepath.Base(s.dir))
	s.logFile = filepath.Join(s.dir, "log")
	// sshd reads the authorized_keys as the user who logs in.
	must(t, os.Chmod(s.dir, 0o755))
	must(t, os.Mkdir(s.home(), 0o700))
	s.makeKeys()
	if os.Geteuid() == 0 {
		must(t, os.MkdirAll("/run/sshd", 0o755)) // privilege separation directory
	}
	t.Cleanup(s.Stop)
	must(t, s.startOnFreePort())
	return s
}

func login(t testing.TB, account *Account) string {
	t.Helper()
	if account != nil {
		return account.Name
	}
	current, err := user.Current()
	must(t, err)
	return current.Username
}

// startOnFreePort tries again when another process took the port meanwhile.
func (s *Server) startOnFreePort() error {
	var err error
	for range bindAttempts {
		if s.Port, err = freePort(); err != nil {
			return err
		}
		s.Addr = net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
		s.writeConfigs()
		if err = s.start(); err == nil {
			return nil
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// start runs sshd and returns when it listens.
func (s *Server) start() error {
	log, err := os.OpenFile(s.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	before := len(s.Log())
	p := &process{done: make(chan struct{})}
	args := append(slices.Clone(s.config.Inside), env.Tool(s.t, "sshd"), "-D", "-e", "-f", s.sshdConfig())
	p.cmd = exec.Command(args[0], args[1:]...)
	// A file and not a pipe: the sessions inherit it, and with a pipe Wait would wait for
	// them.
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.wg.Go(func() {
		_ = p.cmd.Wait()
		close(p.done)
	})
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	if err := s.waitListening(p, before); err != nil {
		s.Stop()
		return err
	}
	return nil
}

func (s *Server) waitListening(p *process, from int) error {
	line := fmt.Sprintf("Server listening on %s port %d.", s.Host, s.Port)
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		if log := s.Log(); len(log) > from && strings.Contains(log[from:], line) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("sshd ended: %s", s.Log())
		case <-time.After(pollInterval):
		}
	}
	return fmt.Errorf("sshd does not listen: %s", s.Log())
}

// Stop ends the server, its sessions and what was started in them. It may be
// called again.
func (s *Server) Stop() {
	s.mu.Lock()
	p := s.proc
	s.proc = nil
	s.mu.Unlock()
	if p == nil {
		return
	}
	sessions := descendants(p.cmd.Process.Pid)
	_ = p.cmd.Process.Signal(os.Interrupt)
	_ = terminate(p.cmd.Process)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
	}
	p.wg.Wait()
	if err := endAll(func() []int { return append(alive(sessions), withEnviron(s.marker)...) }); err != nil {
		s.t.Error(err)
	}
}

// Restart stops the server with its sessions and starts it again on the same
// port.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	must(s.t, s.start())
}

// KillSessions ends every connection and what runs in it at once, as a crash
// would; the server goes on listening.
func (s *Server) KillSessions() {
	s.t.Helper()
	s.mu.Lock()
	p := s.proc
	s.mu.Unlock()
	if p == nil {
		return
	}
	sessions := descendants(p.cmd.Process.Pid)
	must(s.t, kill(func() []int { return append(alive(sessions), withEnviron(s.marker)...) }))
}

// Log returns what sshd has written so far (LogLevel VERBOSE).
func (s *Server) Log() string {
	data, err := os.ReadFile(s.logFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Error(err)
	}
	return string(data)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
