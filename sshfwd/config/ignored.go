package config

import (
	"runtime"
	"strings"

	"gpg-bridge/internal/usertext"
)

// ignoredKeys are the keywords that change what ssh does and that have no
// effect here. Leaving them out makes no connection less safe: VerifyHostKeyDNS
// only adds to what is trusted.
func ignoredKeys() []string {
	keys := []string{
		"compression", "controlmaster", "controlpath", "controlpersist",
		"enablesshkeysign", "forwardx11", "gssapiauthentication", "gssapikeyexchange",
		"hostbasedauthentication", "obscurekeystroketiming",
		"pkcs11provider", "rekeylimit", "securitykeyprovider",
		"tunnel", "verifyhostkeydns",
	}
	if runtime.GOOS == "windows" { // which ignores it itself
		keys = append(keys, "ipqos")
	}
	return keys
}

// ignored returns the settings, "keyword value", that ask for what we do not do.
func (s Settings) ignored(defaults Settings) []string {
	var list []string
	for _, key := range ignoredKeys() {
		value := s.Text(key)
		if value == "" || value == "no" || strings.EqualFold(value, "false") || value == defaults.get(key) {
			continue
		}
		list = append(list, key+" "+usertext.Line(value))
	}
	return list
}
