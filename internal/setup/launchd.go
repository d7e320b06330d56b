package setup

import (
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
)

// launchd returns an agent's property list (launchd.plist(5)).
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

// label is the agent's name.
func (s *service) label() string { return "gpg-bridge." + s.host }

// launchdAdvice is what to do with the agent.
func (s *service) launchdAdvice() []string {
	file := "~/Library/LaunchAgents/" + s.label() + ".plist"
	return []string{"save this as " + file, "then: launchctl bootstrap gui/$(id -u) " + file}
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
