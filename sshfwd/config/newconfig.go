package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gpg-bridge/internal/sshflags"
	"gpg-bridge/internal/usertext"
)

// newConfig makes a Config from the settings for a destination; defaults are
// those of an ssh without any configuration.
func newConfig(o Options, s, defaults Settings) (*Config, error) {
	c := &Config{
		Destination: o.Destination, ConfigFile: o.configFile(), Detached: o.Detached,
		BatchMode: o.BatchMode || s.On("batchmode", false),
		Lacks:     s.lacks(defaults),
	}
	c.setHost(o, s)
	c.setRoute(s)
	c.setHostKeys(s)
	c.setAlgorithms(o, s, defaults)
	c.setLogin(s, defaults)
	c.setSession(o, s)
	c.setControl(s)
	if err := c.setForwards(s); err != nil {
		return nil, err
	}
	if err := c.setNumbers(s); err != nil {
		return nil, err
	}
	if err := c.check(s); err != nil {
		return nil, err
	}
	c.setFiles(o, s)
	if err := c.setAgent(s); err != nil {
		return nil, err
	}
	return c, c.setIdentities(s)
}

func (c *Config) setHost(o Options, s Settings) {
	c.Hostname, c.User = s.get("hostname"), s.get("user")
	c.OriginalHost = cmp.Or(s.get("host"), o.host()) // ssh before 8.9 does not print it
}

func (c *Config) setRoute(s Settings) {
	c.TCPKeepAlive = s.On("tcpkeepalive", true)
	c.AddressFamily = s.get("addressfamily")
	c.BindAddress, c.BindInterface = s.Text("bindaddress"), s.Text("bindinterface")
	c.ProxyJump, c.ProxyCommand = s.Text("proxyjump"), s.Text("proxycommand")
	c.ProxyUseFdpass = s.On("proxyusefdpass", false)
	c.IPQoS = parseQoS(s.get("ipqos"))
}

func (c *Config) setHostKeys(s Settings) {
	c.HostKeyAlias = strings.ToLower(s.Text("hostkeyalias"))
	c.StrictHostKeyChecking = strictness(s.get("stricthostkeychecking"))
	c.HashKnownHosts = s.On("hashknownhosts", false)
	c.CheckHostIP = s.On("checkhostip", false)
	c.KnownHostsCommand = s.Text("knownhostscommand")
	c.NoHostAuthenticationForLocalhost = s.On("nohostauthenticationforlocalhost", false)
	c.UpdateHostKeys = s.keyUpdates()
	c.FingerprintHash = strings.ToUpper(cmp.Or(s.get("fingerprinthash"), "SHA256"))
	c.VisualHostKey = s.On("visualhostkey", false)
}

func (c *Config) setLogin(s, defaults Settings) {
	c.IdentityAgent, c.IdentitiesOnly = s.get("identityagent"), s.On("identitiesonly", false)
	c.IdentitiesAreDefaults = slices.Equal(s["identityfile"], defaults["identityfile"])
	c.PreferredAuthentications = s.list("preferredauthentications")
	c.PubkeyAuthentication = enabled(s.get("pubkeyauthentication"))
	c.PasswordAuthentication = s.On("passwordauthentication", true)
	c.KbdInteractiveAuthentication = s.On("kbdinteractiveauthentication", s.On("challengeresponseauthentication", true))
}

func (c *Config) setSession(o Options, s Settings) {
	c.RequestTTY, c.RemoteCommand, c.SessionType = requestTTY(s.get("requesttty")), s.Text("remotecommand"), s.get("sessiontype")
	c.StdinNull = s.On("stdinnull", false)
	if c.SessionType == "" { // ssh before 8.7 prints neither, and has the flags only
		c.setSessionByFlags(o.line())
	}
	c.SendEnv, c.SetEnv = s["sendenv"], s["setenv"]
	c.EscapeChar = strings.TrimPrefix(s.get("escapechar"), `\`)
	c.EnableEscapeCommandline = s.On("enableescapecommandline", true)
	c.ExitOnForwardFailure = s.On("exitonforwardfailure", false)
	c.LogLevel = usertext.ParseLevel(s.get("loglevel"))
	if s.On("permitlocalcommand", false) {
		c.LocalCommand = s.Text("localcommand")
	}
}

func (c *Config) setSessionByFlags(line sshflags.Line) {
	c.SessionType = "default"
	switch {
	case line.Has('N'):
		c.SessionType = "none"
	case line.Has('s'):
		c.SessionType = "subsystem"
	}
	c.StdinNull = line.Has('n') || line.Has('f')
}

func (c *Config) setNumbers(s Settings) error {
	for _, n := range []struct {
		key      string
		fallback int
		set      func(int)
	}{
		{"port", 22, func(v int) { c.Port = v }},
		{"requiredrsasize", 1024, func(v int) { c.RequiredRSASize = v }},
		{"numberofpasswordprompts", 3, func(v int) { c.NumberOfPasswordPrompts = v }},
		{"connecttimeout", 0, func(v int) { c.ConnectTimeout = time.Duration(v) * time.Second }},
		{"serveraliveinterval", 0, func(v int) { c.ServerAliveInterval = time.Duration(v) * time.Second }},
		{"serveralivecountmax", 3, func(v int) { c.ServerAliveCountMax = v }},
		{"connectionattempts", 1, func(v int) { c.ConnectionAttempts = max(v, 1) }},
	} {
		v, err := s.number(n.key, n.fallback)
		if err != nil {
			return err
		}
		n.set(v)
	}
	return nil
}

func (c *Config) setIdentities(s Settings) error {
	for _, list := range []struct {
		key string
		to  *[]string
	}{{"identityfile", &c.IdentityFiles}, {"certificatefile", &c.CertificateFiles}} {
		for _, raw := range s[list.key] {
			if strings.EqualFold(raw, "none") {
				continue
			}
			path, err := c.expandPath(raw)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, path)
		}
	}
	return nil
}

// strictness reads StrictHostKeyChecking; a word that is not known counts as the strictest.
func strictness(v string) Strictness {
	switch strings.ToLower(v) {
	case "", "ask":
		return StrictAsk
	case "no", "false", "off":
		return StrictNo
	case "accept-new":
		return StrictAcceptNew
	}
	return StrictYes
}

// keyUpdates reads UpdateHostKeys.
func (s Settings) keyUpdates() KeyUpdates {
	switch strings.ToLower(s.get("updatehostkeys")) {
	case "yes", "true":
		return UpdateYes
	case "ask":
		return UpdateAsk
	}
	return UpdateNo
}

// enabled is for PubkeyAuthentication, which also has the values "unbound" and
// "host-bound".
func enabled(v string) bool { return !strings.EqualFold(v, "no") && !strings.EqualFold(v, "false") }

func requestTTY(v string) string {
	switch v = strings.ToLower(v); v {
	case "true":
		return "yes"
	case "false":
		return "no"
	case "no", "yes", "force":
		return v
	}
	return "auto"
}

// check refuses settings with which there is nothing to connect to, or no telling how.
func (c *Config) check(s Settings) error {
	if err := s.checkLists(); err != nil {
		return err
	}
	if text := s.Text("refuseconnection"); text != "" {
		return &Error{
			Problem: fmt.Sprintf("the configuration refuses connections to %q: %s", c.Destination, usertext.Line(text)),
			Advice:  "see RefuseConnection in ssh_config",
		}
	}
	if c.ProxyJump != "" && c.ProxyCommand != "" { // never from ssh -G
		return &Error{
			Problem: fmt.Sprintf("both ProxyJump and ProxyCommand are set for %q", c.Destination),
			Advice:  "install OpenSSH's client, which knows which comes first, or leave one of them out",
		}
	}
	if c.Hostname == "" || c.User == "" || c.Port < 1 || c.Port > 65535 {
		return &Error{
			Problem: fmt.Sprintf("no host, user or port for %q", c.Destination),
			Advice:  "see what `ssh -G` prints with the same arguments",
		}
	}
	return nil
}
