package sshdtest

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

	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testenv"
)

// SSH is the real ssh with the server's own ssh_config, key and known_hosts.
// The destination is `host`: s.SSH("host", "uname").
func (s *Server) SSH(args ...string) *exec.Cmd {
	s.t.Helper()
	return exec.Command(testenv.Tool(s.t, "ssh"), append([]string{"-F", s.ConfigFile}, args...)...)
}

// home is the home directory of sessions without an account of their own.
func (s *Server) home() string { return filepath.Join(s.dir, "home") }

func (s *Server) sshdConfig() string { return filepath.Join(s.dir, "sshd_config") }

func (s *Server) makeKeys() {
	s.t.Helper()
	s.HostKeyFile = filepath.Join(s.dir, "host_key")
	s.ClientKeyFile = filepath.Join(s.dir, "client_key")
	s.HostPublicKey = writeKey(s, s.HostKeyFile)
	line := writeKey(s, s.ClientKeyFile)
	if s.config.KeyOptions != "" {
		line = s.config.KeyOptions + " " + line
	}
	s.write("authorized_keys", 0o644, line+"\n")
}

// writeKey makes an ed25519 key in OpenSSH's format and gives its public half.
func writeKey(s *Server, path string) string {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(s.t, err)
	block, err := ssh.MarshalPrivateKey(private, "sshdtest")
	must(s.t, err)
	must(s.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewPublicKey(public)
	must(s.t, err)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	must(s.t, os.WriteFile(path+".pub", []byte(line+"\n"), 0o644))
	return line
}

// writeConfigs writes what depends on the port.
func (s *Server) writeConfigs() {
	s.t.Helper()
	s.KnownHosts = s.write("known_hosts", 0o644, fmt.Sprintf("[%s]:%d %s\n", s.Host, s.Port, s.HostPublicKey))
	s.write("sshd_config", 0o644, strings.Join(s.serverLines(), "\n")+"\n")
	s.ConfigFile = s.write("ssh_config", 0o644, strings.Join(s.clientLines(), "\n")+"\n")
}

// serverLines: sshd takes the first value of each keyword, and of SetEnv only
// the first line (servconf.c), so all of it is one line.
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
		// The rc files of whoever runs the test are not the test's, and a
		// session that is killed must not leave half of their work behind.
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
