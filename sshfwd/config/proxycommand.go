package config

import (
	"cmp"
	"fmt"
	"strings"
)

// ProxyCommandLine is ProxyCommand with its tokens expanded (expand_proxy_command in
// OpenSSH's sshconnect.c). The names on the command line were checked before
// (checkNames); what HostName and User made of them is checked here, since a shell will
// read it. Errors are *Error.
func (c *Config) ProxyCommandLine() (string, error) {
	if err := c.checkInCommand("ProxyCommand"); err != nil {
		return "", err
	}
	return Expand(c.ProxyCommand, func(t byte) (string, error) {
		if !isProxyToken(t) {
			return "", fmt.Errorf("unknown token %q", "%"+string(rune(t)))
		}
		return c.Token(t)
	}, false)
}

// checkInCommand refuses names that a shell would not take for a name in this command.
func (c *Config) checkInCommand(keyword string) error {
	for _, name := range []string{c.Hostname, c.OriginalHost, cmp.Or(c.HostKeyAlias, c.OriginalHost)} {
		if !validHostname(name) || !safeInCommand(name) {
			return &Error{
				Problem: fmt.Sprintf("the host name %q may not stand in a %s", name, keyword),
				Advice:  "correct HostName or HostKeyAlias in ssh_config",
			}
		}
	}
	if !safeInCommand(c.User) {
		return &Error{Problem: fmt.Sprintf("the user name %q may not stand in a %s", c.User, keyword), Advice: "correct User in ssh_config"}
	}
	return nil
}

// ProxyCommandText is ProxyCommand with its tokens expanded, to compare it with another: the
// names in it are not checked, and unknown tokens stay as they are.
func (c *Config) ProxyCommandText() string {
	text, _ := Expand(c.ProxyCommand, func(t byte) (string, error) {
		if !isProxyToken(t) {
			return string([]byte{'%', t}), nil
		}
		return c.Token(t)
	}, false) // no token fails
	return text
}

// isProxyToken reports whether ProxyCommand has the token (ssh_config(5), TOKENS).
func isProxyToken(t byte) bool { return strings.IndexByte("%hknpr", t) >= 0 }
