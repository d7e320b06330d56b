package sshfwd

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is a resolved destination: the values of ssh_config(5) that a
// connection needs, under ssh_config's names. It is ready to use: tokens and
// tildes are expanded, but for ProxyCommand, KnownHostsCommand and LocalCommand.
type Config struct {
	Destination  string // as the user gave it, for messages
	OriginalHost string // the host the user named, %n
	Hostname     string // where to connect to, lower case
	Port         int
	User         string

	// IdentityFiles and CertificateFiles are paths. IdentitiesAreDefaults: the
	// user named none, and a missing one is no matter.
	IdentityFiles         []string
	IdentitiesAreDefaults bool
	CertificateFiles      []string
	IdentityAgent         string // a socket, "none", "SSH_AUTH_SOCK", "$NAME", or "" for SSH_AUTH_SOCK
	IdentitiesOnly        bool

	AddKeysToAgent KeysToAgent
	// ForwardAgent: sessions may use the agent at ForwardAgentSocket, a path or
	// "$NAME", or where that is "" the one that we use (Client.ForwardAgent).
	ForwardAgent       bool
	ForwardAgentSocket string
	// StateDir is where the key that was let in last is remembered, so that it
	// is offered first; "" for nowhere. The caller sets it.
	StateDir string

	UserKnownHostsFiles   []string
	GlobalKnownHostsFiles []string
	HostKeyAlias          string
	StrictHostKeyChecking Strictness
	HashKnownHosts        bool
	CheckHostIP           bool
	RequiredRSASize       int // bits

	// HostKeyAlgorithms, CASignatureAlgorithms and PubkeyAcceptedAlgorithms are
	// ssh's lists, the user's or the default. KexAlgorithms, Ciphers and MACs
	// are nil unless the user set them. Any of them may hold names that
	// golang.org/x/crypto does not know.
	HostKeyAlgorithms        []string
	CASignatureAlgorithms    []string
	PubkeyAcceptedAlgorithms []string
	KexAlgorithms            []string
	Ciphers                  []string
	MACs                     []string

	PreferredAuthentications     []string // nil for ssh's order
	PubkeyAuthentication         bool
	PasswordAuthentication       bool
	KbdInteractiveAuthentication bool
	NumberOfPasswordPrompts      int
	BatchMode                    bool

	ConnectTimeout      time.Duration // 0 for the system's
	ServerAliveInterval time.Duration // 0 for no keepalives
	ServerAliveCountMax int
	TCPKeepAlive        bool
	AddressFamily       string // "any", "inet", "inet6"
	BindAddress         string

	ConnectionAttempts int    // one a second
	ConfigFile         string // -F, with which jump hosts are resolved too

	ProxyJump         string // [user@]host[:port] or ssh://…, the last one is next to the host
	ProxyCommand      string // raw, with its tokens
	ProxyUseFdpass    bool   // ProxyCommand hands over a connected socket and ends
	BindInterface     string
	KnownHostsCommand string // raw, with its tokens
	RevokedHostKeys   string // files

	NoHostAuthenticationForLocalhost bool

	RequestTTY           string // "auto", "no", "yes", "force"
	RemoteCommand        string
	SessionType          string   // "none" (-N), "subsystem" (-s), "default"
	SendEnv              []string // patterns
	SetEnv               []string // NAME=value
	EscapeChar           string   // one character, "^X" or "none"
	ExitOnForwardFailure bool
	Forwards             ForwardSpecs // LocalForward, RemoteForward, DynamicForward and theirs
	LogLevel             string       // upper case, "INFO" by default

	// ControlPath is where ssh shares its connections, "" for nowhere, or where
	// there was no ssh to ask. ControlMaster: one that finds none there shares
	// its own. ControlPersist is how long that then stays when it is not used, 0
	// where this is not limited or it does not stay at all. A Client shares
	// nothing.
	ControlPath    string
	ControlMaster  bool
	ControlPersist time.Duration

	// Ignored are the settings that are not supported and have no effect, each
	// "keyword value".
	Ignored []string

	// Stderr is where the commands of the configuration, such as ProxyCommand,
	// write their errors; nil for nowhere. The caller sets it.
	Stderr io.Writer

	// Warnings is what ssh said while it read its configuration, one line each,
	// safe for a terminal.
	Warnings []string
}

// Strictness is StrictHostKeyChecking.
type Strictness string

// The values of StrictHostKeyChecking (ssh_config(5)). StrictNo adds unknown
// keys without asking; unlike ssh, a changed or revoked key is refused even
// then.
const (
	StrictAsk       Strictness = "ask"
	StrictYes       Strictness = "yes"
	StrictAcceptNew Strictness = "accept-new"
	StrictNo        Strictness = "no"
)

// settings are ssh_config keywords, lower case, with their values in order.
type settings map[string][]string

// parseSettings reads the output of ssh -G: a keyword, a space and the value on
// each line (dump_client_config in OpenSSH's readconf.c).
func parseSettings(out []byte) settings {
	s := settings{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if key != "" {
			key = strings.ToLower(key)
			s[key] = append(s[key], value)
		}
	}
	return s
}

func (s settings) get(key string) string {
	if len(s[key]) == 0 {
		return ""
	}
	return s[key][0]
}

// text is the value, "" for ssh's "none".
func (s settings) text(key string) string {
	if v := s.get(key); !strings.EqualFold(v, "none") {
		return v
	}
	return ""
}

// on reads ssh -G's two notations of a flag, yes/no and true/false.
func (s settings) on(key string, fallback bool) bool {
	switch strings.ToLower(s.get(key)) {
	case "yes", "true":
		return true
	case "no", "false":
		return false
	}
	return fallback
}

func (s settings) list(key string) []string { return splitCommas(s.get(key)) }

func splitCommas(v string) []string {
	if v == "" {
		return nil
	}
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' })
}

// number reads a count or a number of seconds, 0 for "none". What is no number
// is an error: to go on without a limit that the user set is not for us. So is
// more than ssh takes (convtime in OpenSSH's misc.c), which is also more than fits
// into a time.Duration.
func (s settings) number(key string, fallback int) (int, error) {
	v := s.get(key)
	switch strings.ToLower(v) {
	case "":
		return fallback, nil
	case "none":
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, &ConfigError{
			Problem: fmt.Sprintf("bad number %q for %s", v, key),
			Advice:  "correct it in ssh_config or on the command line",
		}
	}
	return n, nil
}

// newConfig makes a Config from the settings for a destination; defaults are
// those of an ssh without any configuration.
func newConfig(o Options, s, defaults settings) (*Config, error) {
	c := &Config{
		Destination: o.Destination, OriginalHost: s.get("host"), Hostname: s.get("hostname"), User: s.get("user"),
		IdentityAgent: s.get("identityagent"), IdentitiesOnly: s.on("identitiesonly", false),
		IdentitiesAreDefaults: slices.Equal(s["identityfile"], defaults["identityfile"]),
		UserKnownHostsFiles:   splitFiles(s.text("userknownhostsfile")),
		GlobalKnownHostsFiles: splitFiles(s.text("globalknownhostsfile")),
		HostKeyAlias:          strings.ToLower(s.text("hostkeyalias")), HashKnownHosts: s.on("hashknownhosts", false),
		CheckHostIP:           s.on("checkhostip", false),
		StrictHostKeyChecking: strictness(s.get("stricthostkeychecking")),
		PubkeyAuthentication:  enabled(s.get("pubkeyauthentication")),
		BatchMode:             o.BatchMode || s.on("batchmode", false),
		TCPKeepAlive:          s.on("tcpkeepalive", true),
		AddressFamily:         s.get("addressfamily"), BindAddress: s.text("bindaddress"),
		ProxyJump: s.text("proxyjump"), ProxyCommand: s.text("proxycommand"),
		BindInterface: s.text("bindinterface"), KnownHostsCommand: s.text("knownhostscommand"),
		RevokedHostKeys: s.text("revokedhostkeys"),
		RequestTTY:      requestTTY(s.get("requesttty")), RemoteCommand: s.text("remotecommand"),
		SessionType: s.get("sessiontype"), SendEnv: s["sendenv"], SetEnv: s["setenv"],
		EscapeChar: strings.TrimPrefix(s.get("escapechar"), `\`), LogLevel: s.get("loglevel"),
		ExitOnForwardFailure: s.on("exitonforwardfailure", false),
	}
	if c.OriginalHost == "" { // ssh before 8.9 does not print it
		c.OriginalHost = o.host()
	}
	c.PasswordAuthentication = s.on("passwordauthentication", true)
	c.KbdInteractiveAuthentication = s.on("kbdinteractiveauthentication", s.on("challengeresponseauthentication", true))
	c.setLists(s, defaults)
	if err := c.setForwards(s); err != nil {
		return nil, err
	}
	if err := c.setNumbers(s); err != nil {
		return nil, err
	}
	if err := c.setReach(o, s, defaults); err != nil {
		return nil, err
	}
	if c.Hostname == "" || c.User == "" || c.Port < 1 || c.Port > 65535 {
		return nil, &ConfigError{
			Problem: fmt.Sprintf("no host, user or port for %q", o.Destination),
			Advice:  "see what `ssh -G` prints with the same arguments",
		}
	}
	if err := c.setAuth(s); err != nil {
		return nil, err
	}
	return c, c.setIdentities(s)
}

func (c *Config) setLists(s, defaults settings) {
	c.HostKeyAlgorithms = s.list("hostkeyalgorithms")
	c.CASignatureAlgorithms = s.list("casignaturealgorithms")
	c.PubkeyAcceptedAlgorithms = s.list("pubkeyacceptedalgorithms")
	if c.PubkeyAcceptedAlgorithms == nil { // its name before ssh 8.5
		c.PubkeyAcceptedAlgorithms = s.list("pubkeyacceptedkeytypes")
	}
	c.PreferredAuthentications = s.list("preferredauthentications")
	own := func(key string) []string {
		if s.get(key) == defaults.get(key) {
			return nil
		}
		return s.list(key)
	}
	c.KexAlgorithms, c.Ciphers, c.MACs = own("kexalgorithms"), own("ciphers"), own("macs")
}

func (c *Config) setNumbers(s settings) error {
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
	} {
		v, err := s.number(n.key, n.fallback)
		if err != nil {
			return err
		}
		n.set(v)
	}
	return nil
}

func (c *Config) setIdentities(s settings) error {
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

// strictness takes a word that is not known for the strictest.
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
