package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A service is what a unit or an agent's property list is made of.
type service struct {
	program string
	args    []string // flags of gpg-bridge keep
	host    string   // "" in systemd's template
	home    string
	env     [][2]string
}

// printService prints the service on stdout, and on stderr what to do with it.
func (f *setupFlags) printService(ui *ui, hosts []string) error {
	s, err := f.newService()
	if err != nil {
		return err
	}
	switch kind := f.serviceKind(); {
	case kind == "systemd":
		return s.printSystemd(ui, hosts)
	case kind == "launchd" && len(hosts) == 1:
		s.host = hosts[0]
		return s.printLaunchd(ui)
	case kind == "launchd":
		return &usageError{"gpg-bridge setup", errors.New("a launchd agent is for one host")}
	}
	return &usageError{"gpg-bridge setup", fmt.Errorf("no services for %q here: use gpg-bridge up when you log in", f.service)}
}

func (f *setupFlags) serviceKind() string {
	if f.service != "auto" {
		return f.service
	}
	return map[string]string{"linux": "systemd", "darwin": "launchd"}[runtime.GOOS]
}

func (f *setupFlags) newService() (*service, error) {
	program, err := programPath()
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	s := &service{program: program, home: home}
	if f.given.Changed("config") {
		path, err := filepath.Abs(f.proxy.config)
		if err != nil {
			return nil, err
		}
		_ = f.given.Set("config", path)
	}
	f.given.Visit(func(flag *pflag.Flag) {
		if slices.Contains(serviceFlags(), flag.Name) && flag.Value.String() != flag.DefValue {
			s.args = append(s.args, flagWords(flag, flag.Value.String())...)
		}
	})
	s.addEnv("GNUPGHOME", os.Getenv("GNUPGHOME"))
	if socket := os.Getenv("SSH_AUTH_SOCK"); s.lasts(socket, os.Getenv("XDG_RUNTIME_DIR")) {
		s.addEnv("SSH_AUTH_SOCK", socket)
	}
	return s, nil
}

// serviceFlags are those that gpg-bridge keep has, too.
func serviceFlags() []string {
	return []string{"agent-socket", "allow-unrestricted", "no-compat", "remote-socket", "keys", "takeover", "config", "via", "jump"}
}

// programPath is an absolute path that lasts: the one in PATH, which may be a
// link to a version's.
func programPath() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if found, err := exec.LookPath("gpg-bridge"); err == nil && filepath.IsAbs(found) && sameFile(found, self) {
		return found, nil
	}
	return self, nil
}

func (s *service) addEnv(name, value string) {
	if value != "" {
		s.env = append(s.env, [2]string{name, value})
	}
}

// lasts reports whether the path of an ssh-agent's socket is the same after the
// next login. OpenSSH's ssh-agent has those that are not in /tmp or, from 10.1,
// in ~/.ssh/agent.
func (s *service) lasts(socket, runtimeDir string) bool {
	below := func(dir string) bool { return dir != "" && strings.HasPrefix(socket, strings.TrimRight(dir, "/")+"/") }
	return below(runtimeDir) || below(s.home) && !below(filepath.Join(s.home, ".ssh", "agent"))
}

func (s *service) printSystemd(ui *ui, hosts []string) error {
	if _, err := io.WriteString(ui.stdout, s.systemd()); err != nil {
		return err
	}
	if len(hosts) == 0 {
		hosts = []string{"HOST"}
	}
	units := make([]string, len(hosts))
	for i, host := range hosts {
		units[i] = "gpg-bridge@" + host + ".service"
	}
	ui.tell("save this as ~/.config/systemd/user/gpg-bridge@.service")
	ui.tell("then: systemctl --user daemon-reload && systemctl --user enable --now " + strings.Join(units, " "))
	return nil
}

// systemd is a template unit (systemd.service(5), systemd.exec(5)). The instance
// is the host's name; it is not unescaped (%I), since that makes slashes of its
// hyphens.
func (s *service) systemd() string {
	words := append([]string{s.program, "keep"}, s.args...)
	words = append(words, "--pin", "--")
	for i, word := range words {
		words[i] = systemdQuote(strings.ReplaceAll(word, "$", "$$"))
	}
	env := ""
	for _, pair := range s.env {
		env += "Environment=" + systemdQuote(pair[0]+"="+pair[1]) + "\n"
	}
	return fmt.Sprintf(systemdUnit, strings.Join(words, " "), env)
}

const systemdUnit = `# Keeps a bridge to a host up: gpg-bridge@dev.service to the one that is dev in
# ssh_config. Printed by gpg-bridge setup --service.
[Unit]
Description=gpg-bridge to %%i
Documentation=man:ssh_config(5)
# However often it has to start.
StartLimitIntervalSec=0

[Service]
Type=exec
# It connects again by itself, for ever, and asks nothing: it logs in with keys
# that need no passphrase, or that your ssh-agent has.
ExecStart=%s %%i
# It ends when gpg-bridge down asks it to, when a gpg-bridge ssh of yours can log
# in and it cannot, and at once while another process is this host's bridge. So
# it is started again then, too; systemctl --user stop is what ends it for good.
Restart=always
RestartSec=30
# A gpg-agent that it had to start is yours, and goes on.
KillMode=process
# The environment of services is not that of your shell. Without SSH_AUTH_SOCK
# there is no ssh-agent for it, and without GNUPGHOME it is ~/.gnupg's gpg-agent.
# If your ssh-agent has another path at each login, tell systemd at login:
#   systemctl --user import-environment SSH_AUTH_SOCK
#Environment=SSH_AUTH_SOCK=%%t/ssh-agent.socket
%s
[Install]
WantedBy=default.target
`

// systemdQuote quotes a word (systemd.syntax(7), QUOTING; the specifiers of
// systemd.unit(5)).
func systemdQuote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"'\\%;") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word) + `"`
}

func (s *service) printLaunchd(ui *ui) error {
	s.addEnv("PATH", os.Getenv("PATH"))
	if _, err := io.WriteString(ui.stdout, s.launchd()); err != nil {
		return err
	}
	file := "~/Library/LaunchAgents/" + s.label() + ".plist"
	ui.tell("save this as " + file)
	ui.tell("then: launchctl bootstrap gui/$(id -u) " + file)
	return nil
}

func (s *service) label() string { return "gpg-bridge." + s.host }

// launchd is an agent's property list (launchd.plist(5)).
func (s *service) launchd() string {
	words := append([]string{s.program, "keep"}, s.args...)
	words = append(words, "--pin", "--", s.host)
	var args, env strings.Builder
	for _, word := range words {
		fmt.Fprintf(&args, "    <string>%s</string>\n", xmlText(word))
	}
	for _, pair := range s.env {
		fmt.Fprintf(&env, "    <key>%s</key>\n    <string>%s</string>\n", xmlText(pair[0]), xmlText(pair[1]))
	}
	log := filepath.Join(s.home, "Library", "Logs", s.label()+".log")
	return fmt.Sprintf(launchdAgent, xmlText(s.label()), args.String(), env.String(), xmlText(log))
}

const launchdAgent = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<!-- Keeps a bridge to a host up. Printed by gpg-bridge setup, option service. -->
<dict>
  <key>Label</key>
  <string>%s</string>
  <!-- It connects again by itself, for ever, and asks nothing: it logs in with keys
       that need no passphrase, or that your ssh-agent has. -->
  <key>ProgramArguments</key>
  <array>
%s  </array>
  <!-- launchd gives an agent Apple's ssh-agent, and a PATH without what Homebrew
       and MacPorts install. -->
  <key>EnvironmentVariables</key>
  <dict>
%s  </dict>
  <key>RunAtLoad</key>
  <true/>
  <!-- It ends when gpg-bridge down asks it to, when a gpg-bridge ssh of yours can log
       in and it cannot, and at once while another process is this host's bridge. So
       it is started again then, too; launchctl bootout is what ends it for good. -->
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>30</integer>
  <!-- A gpg-agent that it had to start is yours, and goes on. -->
  <key>AbandonProcessGroup</key>
  <true/>
  <key>StandardErrorPath</key>
  <string>%s</string>
</dict>
</plist>
`

func xmlText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
