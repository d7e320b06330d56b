package config

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"gpg-bridge/internal/usertext"
)

// A Lack is a setting with which ssh does something that a Client does not.
type Lack struct {
	Keyword string // as ssh_config(5) writes it
	Value   string // safe for a terminal

	// Vital: without it the user does not get what was asked for, or cannot log in. Leaving
	// out another makes no connection less safe: VerifyHostKeyDNS only adds to what is
	// trusted.
	Vital bool

	OfSession bool // it is about the session, and so not about a jump host
}

func (l Lack) String() string { return l.Keyword + " " + l.Value }

// GSSAPI is the Lack of a log-in that ssh tries with a Kerberos ticket and leaves out without
// one. It is Vital if nothing else is to be tried.
const GSSAPI = "GSSAPIAuthentication"

// Fork is the Lack of a session that goes to the background when it is logged in (-f).
const Fork = "ForkAfterAuthentication"

// A keyword is one of ssh_config's that has no effect here.
type keyword struct {
	name             string
	vital, ofSession bool

	asks func(value string) bool // whether the value asks ssh for anything; nil: any but no
}

func (s Settings) keywords() []keyword {
	hasDisplay := func(string) bool { return os.Getenv("DISPLAY") != "" } // ssh forwards none without (main in ssh.c)
	return []keyword{
		{name: "Compression"},
		{name: Fork, vital: true, ofSession: true},
		{name: "ForwardX11", vital: true, ofSession: true, asks: hasDisplay},
		{name: "HostbasedAuthentication", vital: s.onlyForeignMethods()},
		{name: "ObscureKeystrokeTiming"},
		{name: "PKCS11Provider", vital: true},
		{name: "RekeyLimit"},
		{name: "SecurityKeyProvider"},
		{name: "IPQoS", asks: func(string) bool { return runtime.GOOS == "windows" }}, // which ignores it itself
		{name: "Tunnel", vital: true, ofSession: true},
		{name: "VerifyHostKeyDNS"},
	}
}

// lacks returns what the settings ask for and a Client does not do. defaults are those of an ssh
// without any configuration.
func (s Settings) lacks(defaults Settings) []Lack {
	var list []Lack
	for _, k := range s.keywords() {
		key := strings.ToLower(k.name)
		value := s.Text(key)
		if value == "" || isNo(value) || value == defaults.get(key) || k.asks != nil && !k.asks(value) {
			continue
		}
		if value == "UNKNOWN" { // what ssh -G of OpenSSH 10.0 prints for Compression yes
			value = "yes"
		}
		list = append(list, Lack{k.name, usertext.Line(value), k.vital, k.ofSession})
	}
	if s.On("gssapiauthentication", false) {
		list = append(list, Lack{Keyword: GSSAPI, Value: "yes", Vital: s.onlyForeignMethods()})
	}
	if s.get("proxycommand") == "-" { // stdin and stdout are the connection
		list = append(list, Lack{Keyword: "ProxyCommand", Value: "-", Vital: true})
	}
	return list
}

func isNo(value string) bool { return value == "no" || strings.EqualFold(value, "false") }

// onlyForeignMethods reports whether PreferredAuthentications leaves nothing that a Client can
// log in with.
func (s Settings) onlyForeignMethods() bool {
	methods := s.list("preferredauthentications")
	return len(methods) > 0 && !slices.ContainsFunc(methods, func(m string) bool {
		return slices.Contains([]string{"publickey", "password", "keyboard-interactive", "none"}, m)
	})
}

// IgnoredText names the Lacks in a message, "" for none.
func (c *Config) IgnoredText() string {
	var texts []string
	for _, l := range c.Lacks {
		texts = append(texts, l.String())
	}
	return strings.Join(texts, ", ")
}
