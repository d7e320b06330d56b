package setup

import (
	"fmt"
	"strings"
)

// systemd returns a template unit (systemd.service(5), systemd.exec(5)), whose instances
// are named by their hosts. The name is used as it is (%i): unescaping it (%I) would turn
// its hyphens into slashes.
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

// systemdAdvice is what to do with the unit.
func systemdAdvice(hosts []string) []string {
	if len(hosts) == 0 {
		hosts = []string{"HOST"}
	}
	units := make([]string, len(hosts))
	for i, host := range hosts {
		units[i] = "gpg-bridge@" + host + ".service"
	}
	return []string{
		"save this as ~/.config/systemd/user/gpg-bridge@.service",
		"then: systemctl --user daemon-reload && systemctl --user enable --now " + strings.Join(units, " "),
	}
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
