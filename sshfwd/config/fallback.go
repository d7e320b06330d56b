package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// fallbackKeys are the keywords that are read where there is no ssh to ask, but for those
// of manyKeys.
func fallbackKeys() []string {
	return []string{
		"hostname", "port", "user", "identityagent", "addkeystoagent", "forwardagent", "identitiesonly", "userknownhostsfile", "globalknownhostsfile",
		"hostkeyalias", "stricthostkeychecking", "hashknownhosts", "checkhostip", "requiredrsasize",
		"hostkeyalgorithms", "casignaturealgorithms", "pubkeyacceptedalgorithms", "kexalgorithms", "ciphers", "macs",
		"preferredauthentications", "pubkeyauthentication", "passwordauthentication", "kbdinteractiveauthentication",
		"numberofpasswordprompts", "batchmode", "connecttimeout", "serveraliveinterval", "serveralivecountmax",
		"tcpkeepalive", "addressfamily", "bindaddress", "proxyjump", "proxycommand", "bindinterface",
		"knownhostscommand", "revokedhostkeys", "connectionattempts", "proxyusefdpass",
		"nohostauthenticationforlocalhost", "requesttty", "remotecommand", "sessiontype", "stdinnull", "escapechar",
		"exitonforwardfailure", "loglevel", "gatewayports", "streamlocalbindmask", "streamlocalbindunlink",
		"clearallforwardings", "updatehostkeys", "fingerprinthash", "visualhostkey", "verifyhostkeydns",
		"localcommand", "permitlocalcommand", "ipqos", "enableescapecommandline",
	}
}

// manyKeys are the keywords that may stand several times.
func manyKeys() []string {
	return []string{"identityfile", "certificatefile", "sendenv", "setenv", "localforward", "remoteforward", "dynamicforward"}
}

// fallbackDefaults are OpenSSH's defaults, where newConfig has none of its own
// (readconf.c, fill_default_options).
func fallbackDefaults() Settings {
	s := Settings{
		"identityfile": {"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519",
			"~/.ssh/id_ed25519_sk"},
		"userknownhostsfile":   {"~/.ssh/known_hosts ~/.ssh/known_hosts2"},
		"globalknownhostsfile": {filepath.Join(systemConfigDir(), "ssh_known_hosts")},
		"addressfamily":        {"any"}, "sessiontype": {"default"}, "escapechar": {"~"}, "loglevel": {"INFO"},
		"enableescapecommandline": {"no"}, "ipqos": {"af21 cs1"},
	}
	maps.Copy(s, defaultAlgorithms())
	return s
}

func systemConfigDir() string {
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("ProgramData"), "ssh")
	}
	return "/etc/ssh"
}

// resolveWithoutSSH reads ssh_config itself: Host, Include and `Match all` only.
// It refuses what it would not read as ssh does.
func resolveWithoutSSH(o Options) (*Config, error) {
	files, err := readConfigFiles(o.configFile())
	if err != nil {
		return nil, err
	}
	own, err := o.settings()
	if err != nil {
		return nil, err
	}
	defaults := fallbackDefaults()
	alias := own.get("host")
	s := Settings{"host": own["host"]}
	for _, key := range fallbackKeys() {
		if values := firstValues(files, own, alias, key); len(values) > 0 {
			s[key] = values[:1]
		} else if d, ok := defaults[key]; ok {
			s[key] = d
		}
	}
	for _, key := range manyKeys() {
		s[key] = allValues(files, own, alias, key)
	}
	// On, unless the user has chosen files, or trusts the DNS (fill_default_options in
	// readconf.c).
	chosen := len(firstValues(files, own, alias, "userknownhostsfile")) > 0
	if dns := s.get("verifyhostkeydns"); s.get("updatehostkeys") == "" && !chosen && (dns == "" || !enabled(dns)) {
		s["updatehostkeys"] = []string{"yes"}
	}
	if len(s["identityfile"]) == 0 {
		s["identityfile"] = defaults["identityfile"]
	}
	if err := s.complete(alias); err != nil {
		return nil, err
	}
	return newConfig(o, s, defaults)
}

func firstValues(files []*ssh_config.Config, own Settings, alias, key string) []string {
	if len(own[key]) > 0 {
		return own[key]
	}
	for _, f := range files {
		if v, err := f.Get(alias, key); err == nil && v != "" {
			return []string{v}
		}
	}
	return nil
}

func allValues(files []*ssh_config.Config, own Settings, alias, key string) []string {
	all := slices.Clone(own[key])
	for _, f := range files {
		v, _ := f.GetAll(alias, key)
		all = append(all, v...)
	}
	return all
}

// complete does what ssh -G would have done to the values: %h in HostName,
// tildes in lists of files, the user's name. It refuses values that would need more.
func (s Settings) complete(alias string) error {
	if s.get("hostname") == "" {
		s["hostname"] = []string{alias}
	}
	name := strings.NewReplacer("%%", "%", "%h", alias).Replace(s.get("hostname"))
	s["hostname"] = []string{strings.ToLower(name)}
	if s.get("user") == "" {
		name, err := localUser()
		if err != nil {
			return &Error{Problem: "no user name", Advice: "give one with -l", Err: err}
		}
		s["user"] = []string{name}
	}
	for _, key := range append(algorithmKeys(), "identityagent", "remotecommand", "userknownhostsfile", "globalknownhostsfile",
		"revokedhostkeys") {
		if v := s.get(key); v != "" && (strings.ContainsAny(v[:1], "+-^") || strings.Contains(v, "%")) {
			return &Error{
				Problem: fmt.Sprintf("cannot understand %s %q without ssh", key, v),
				Advice:  "install OpenSSH's client, or write the value in full in ssh_config",
			}
		}
	}
	return s.expandFiles()
}

func (s Settings) expandFiles() error {
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile", "revokedhostkeys", "identityagent"} {
		words, err := SplitArguments(s.get(key))
		if err != nil {
			return &Error{Problem: fmt.Sprintf("cannot understand %s %q", key, s.get(key)), Advice: "correct the quotes in ssh_config", Err: err}
		}
		for i := range words {
			path, err := ExpandTilde(words[i])
			if err != nil {
				return err
			}
			words[i] = path
		}
		if len(words) > 0 {
			s[key] = []string{strings.Join(words, " ")}
		}
	}
	return nil
}
