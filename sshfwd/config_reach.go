package sshfwd

import (
	"fmt"
	"strings"
)

// setReach sets what it takes to reach the host and to know it.
func (c *Config) setReach(o Options, s, defaults settings) error {
	c.ConfigFile = o.ConfigFile
	c.ProxyUseFdpass = s.on("proxyusefdpass", false)
	c.NoHostAuthenticationForLocalhost = s.on("nohostauthenticationforlocalhost", false)
	c.Ignored = s.ignored(defaults)
	attempts, err := s.number("connectionattempts", 1)
	if err != nil {
		return err
	}
	c.ConnectionAttempts = max(attempts, 1)
	if err := s.checkLists(); err != nil {
		return err
	}
	if text := s.text("refuseconnection"); text != "" {
		return &ConfigError{
			Problem: fmt.Sprintf("the configuration refuses connections to %q: %s", c.Destination, printableLine(text)),
			Advice:  "see RefuseConnection in ssh_config",
		}
	}
	if c.ProxyJump != "" && c.ProxyCommand != "" { // never from ssh -G
		return &ConfigError{
			Problem: fmt.Sprintf("both ProxyJump and ProxyCommand are set for %q", c.Destination),
			Advice:  "install OpenSSH's client, which knows which comes first, or leave one of them out",
		}
	}
	return nil
}

// checkLists refuses a list of algorithms from which everything was taken: it
// must not pass for one that was not set.
func (s settings) checkLists() error {
	for _, key := range []string{"hostkeyalgorithms", "casignaturealgorithms", "pubkeyacceptedalgorithms", "kexalgorithms", "ciphers", "macs"} {
		if len(s[key]) > 0 && s[key][0] == "" {
			return &ConfigError{Problem: "the configuration leaves nothing in " + key, Advice: "correct the list in ssh_config"}
		}
	}
	return nil
}

// ignoredKeys are the keywords that change what ssh does and that have no
// effect here. None of them makes a connection less safe by its absence:
// VerifyHostKeyDNS only adds to what is trusted.
func ignoredKeys() []string {
	return []string{
		"compression", "controlmaster", "controlpath", "controlpersist",
		"enablesshkeysign", "fingerprinthash", "forwardx11", "gssapiauthentication", "gssapikeyexchange",
		"hostbasedauthentication", "obscurekeystroketiming", "permitlocalcommand",
		"pkcs11provider", "rekeylimit", "securitykeyprovider",
		"tunnel", "verifyhostkeydns", "visualhostkey",
	}
}

// ignored gives the settings, "keyword value", that ask for what we do not do.
func (s settings) ignored(defaults settings) []string {
	var list []string
	for _, key := range ignoredKeys() {
		value := s.text(key)
		if value == "" || value == "no" || strings.EqualFold(value, "false") || value == defaults.get(key) {
			continue
		}
		list = append(list, key+" "+printableLine(value))
	}
	return list
}
