package sshd

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
)

// SSH returns the real ssh with the server's own ssh_config, key and known_hosts. The
// destination is `host`: s.SSH("host", "uname").
func (s *Server) SSH(args ...string) *exec.Cmd {
	s.t.Helper()
	return exec.Command(env.Tool(s.t, "ssh"), append([]string{"-F", s.ConfigFile}, args...)...)
}

// home is the home directory of sessions without an account of their own.
func (s *Server) home() string { return filepath.Join(s.dir, "home") }

func (s *Server) sshdConfig() string { return filepath.Join(s.dir, "sshd_config") }

func (s *Server) makeKeys() {
	s.t.Helper()
	s.HostKeyFile = filepath.Join(s.dir, "host_key")
	s.ClientKeyFile = filepath.Join(s.dir, "client_key")
	s.HostPublicKey = writeKey(s, s.HostKeyFile)
	s.clientKey = writeKey(s, s.ClientKeyFile)
	s.SetKeyOptions(s.t, s.config.KeyOptions)
}

// SetKeyOptions changes Config.KeyOptions for later log-ins.
func (s *Server) SetKeyOptions(t testing.TB, options string) {
	t.Helper()
	s.write("authorized_keys", 0o644, strings.TrimSpace(options+" "+s.clientKey)+"\n")
}

// writeKey makes an ed25519 key in OpenSSH's format and returns its public half.
func writeKey(s *Server, path string) string {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(s.t, err)
	block, err := ssh.MarshalPrivateKey(private, "sshd test")
	must(s.t, err)
	must(s.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewPublicKey(public)
	must(s.t, err)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	must(s.t, os.WriteFile(path+".pub", []byte(line+"\n"), 0o644))
	return line
}

// writeConfigs writes the files that depend on the port.
func (s *Server) writeConfigs() {
	s.t.Helper()
	s.KnownHosts = s.write("known_hosts", 0o644, fmt.Sprintf("[%s]:%d %s\n", s.Host, s.Port, s.HostPublicKey))
	s.write("sshd_config", 0o644, strings.Join(s.serverLines(), "\n")+"\n")
	s.ConfigFile = s.write("ssh_config", 0o644, strings.Join(s.clientLines(), "\n")+"\n")
}

// serverLines returns the lines of sshd_config. sshd takes the first value of each keyword, and
// of SetEnv only the first line (servconf.c), so all SetEnv lines are made one.
func (s *Server) serverLines() []string {
	var global, setenv []string
	options := s.config.Options
	match := slices.IndexFunc(options, func(l string) bool { return hasKeyword(l, "match") })
	if match < 0 {
		match = len(options)
	}
	for _, line := range options[:match] {
		if hasKeyword(line, "setenv") {
			setenv = append(setenv, strings.TrimSpace(strings.TrimSpace(line)[len("setenv"):]))
			continue
		}
		global = append(global, line)
	}
	setenv = append(setenv, s.marker)
	if s.config.Account == nil {
		// Sessions must not run the rc files of whoever runs the test: they are not part of
		// the test, and a killed session would leave half of their work behind.
		setenv = append(setenv, "HOME="+s.home())
	}
	if a := s.config.Account; a != nil && a.path != "" {
		setenv = append(setenv, "PATH="+a.path)
	}
	lines := append(global, "SetEnv "+strings.Join(setenv, " "),
		fmt.Sprintf("ListenAddress %s:%d", s.Host, s.Port),
		"HostKey "+s.HostKeyFile,
		"AuthorizedKeysFile "+filepath.Join(s.dir, "authorized_keys"),
		"PidFile none", "UsePAM no", "StrictModes no", "UseDNS no",
		"PermitRootLogin yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PrintMotd no", "PrintLastLog no", "LogLevel VERBOSE",
		"KexAlgorithms -sntrup761*", // 80 ms of CPU for each ssh that connects
		"MaxStartups 200", "MaxSessions 1000", "Subsystem sftp internal-sftp")
	return append(lines, options[match:]...)
}

func hasKeyword(line, keyword string) bool {
	fields := strings.Fields(line)
	return len(fields) > 0 && strings.EqualFold(fields[0], keyword)
}

func (s *Server) clientLines() []string {
	return []string{
		"Host host",
		"  HostName " + s.Host,
		fmt.Sprintf("  Port %d", s.Port),
		"  User " + s.User,
		"  IdentityFile " + s.ClientKeyFile,
		"  UserKnownHostsFile " + s.KnownHosts,
		"  GlobalKnownHostsFile /dev/null",
		"  StrictHostKeyChecking yes",
		"  IdentitiesOnly yes",
		"  IdentityAgent none",
		"  PreferredAuthentications publickey",
		"  BatchMode yes",
		"  ControlPath none",
		"  ConnectTimeout 10",
		"  LogLevel ERROR",
	}
}

func (s *Server) write(name string, mode os.FileMode, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	must(s.t, os.WriteFile(path, []byte(text), mode))
	return path
}
