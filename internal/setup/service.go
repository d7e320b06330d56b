package setup

import (
	"os"
	"path/filepath"
	"strings"

	"gpg-bridge/internal/detached"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
)

// A service is what a systemd unit or a launchd agent is written from.
type service struct {
	program string
	args    []string // flags of gpg-bridge keep
	host    string   // "" in systemd's template
	home    string
	env     [][2]string // names and values
}

// printService prints the service on stdout, and on stderr what to do with it.
func printService(user *ui.UI, options *Options, program string, hosts []string) error {
	s, err := newService(options, program)
	if err != nil {
		return err
	}
	var text string
	var advice []string
	if options.serviceKind() == systemd {
		text, advice = s.systemd(), systemdAdvice(hosts)
	} else {
		s.host = hosts[0]
		s.addEnv("PATH", detached.SearchPath(os.Getenv("PATH")))
		text, advice = s.launchd(), s.launchdAdvice()
	}
	if err := user.Output(text); err != nil {
		return err
	}
	for _, line := range advice {
		user.Tell(line)
	}
	return nil
}

func newService(options *Options, program string) (*service, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	spec := options.spec
	spec.Linger = target.DefaultLinger // it stays without use
	spec.AgentSocket = target.AbsolutePath(spec.AgentSocket)
	if spec.ConfigFile != "" {
		if spec.ConfigFile, err = filepath.Abs(spec.ConfigFile); err != nil {
			return nil, err
		}
	}
	s := &service{program: program, args: spec.Args(target.ForProxy), home: home}
	s.addEnv("GNUPGHOME", target.AbsolutePath(os.Getenv("GNUPGHOME")))
	if socket := os.Getenv("SSH_AUTH_SOCK"); s.lasts(socket, os.Getenv("XDG_RUNTIME_DIR")) {
		s.addEnv("SSH_AUTH_SOCK", socket)
	}
	return s, nil
}

// addEnv adds a variable, unless its value is empty.
func (s *service) addEnv(name, value string) {
	if value != "" {
		s.env = append(s.env, [2]string{name, value})
	}
}

// lasts reports whether an ssh-agent's socket will have the same path after the next
// login. OpenSSH's ssh-agent makes a new path each time in /tmp or, from 10.1, in
// ~/.ssh/agent.
func (s *service) lasts(socket, runtimeDir string) bool {
	below := func(dir string) bool { return dir != "" && strings.HasPrefix(socket, strings.TrimRight(dir, "/")+"/") }
	return below(runtimeDir) || below(s.home) && !below(filepath.Join(s.home, ".ssh", "agent"))
}
