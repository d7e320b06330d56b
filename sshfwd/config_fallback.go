package sshfwd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// maxIncludeDepth is the library's, and less than ssh's 16.
const maxIncludeDepth = 5

// fallbackKeys are the keywords that matter without an ssh to ask; see Config.
func fallbackKeys() []string {
	return []string{
		"hostname", "port", "user", "identityagent", "addkeystoagent", "forwardagent", "identitiesonly", "userknownhostsfile", "globalknownhostsfile",
		"hostkeyalias", "stricthostkeychecking", "hashknownhosts", "checkhostip", "requiredrsasize",
		"hostkeyalgorithms", "casignaturealgorithms", "pubkeyacceptedalgorithms", "kexalgorithms", "ciphers", "macs",
		"preferredauthentications", "pubkeyauthentication", "passwordauthentication", "kbdinteractiveauthentication",
		"numberofpasswordprompts", "batchmode", "connecttimeout", "serveraliveinterval", "serveralivecountmax",
		"tcpkeepalive", "addressfamily", "bindaddress", "proxyjump", "proxycommand", "bindinterface",
		"knownhostscommand", "revokedhostkeys", "connectionattempts", "proxyusefdpass",
		"nohostauthenticationforlocalhost", "requesttty", "remotecommand", "sessiontype", "escapechar",
		"exitonforwardfailure", "loglevel", "gatewayports", "streamlocalbindmask", "streamlocalbindunlink",
		"clearallforwardings",
	}
}

// fallbackDefaults are OpenSSH's, as far as newConfig has no default of its own
// (readconf.c, fill_default_options; myproposal.h for the algorithms).
func fallbackDefaults() settings {
	algorithms := "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521," +
		"sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com,rsa-sha2-512,rsa-sha2-256"
	certs := "ssh-ed25519-cert-v01@openssh.com,ecdsa-sha2-nistp256-cert-v01@openssh.com," +
		"ecdsa-sha2-nistp384-cert-v01@openssh.com,ecdsa-sha2-nistp521-cert-v01@openssh.com," +
		"sk-ssh-ed25519-cert-v01@openssh.com,sk-ecdsa-sha2-nistp256-cert-v01@openssh.com," +
		"rsa-sha2-512-cert-v01@openssh.com,rsa-sha2-256-cert-v01@openssh.com,"
	return settings{
		"identityfile": {"~/.ssh/id_rsa", "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519",
			"~/.ssh/id_ed25519_sk"},
		"userknownhostsfile":       {"~/.ssh/known_hosts ~/.ssh/known_hosts2"},
		"globalknownhostsfile":     {filepath.Join(systemConfigDir(), "ssh_known_hosts")},
		"hostkeyalgorithms":        {certs + algorithms},
		"casignaturealgorithms":    {algorithms},
		"pubkeyacceptedalgorithms": {certs + algorithms},
		"addressfamily":            {"any"}, "sessiontype": {"default"}, "escapechar": {"~"}, "loglevel": {"INFO"},
	}
}

func systemConfigDir() string {
	if runtime.GOOS == "windows" {
		return filepath.Join(os.Getenv("ProgramData"), "ssh")
	}
	return "/etc/ssh"
}

// resolveWithoutSSH reads ssh_config itself: Host, Include and `Match all` only.
// What it cannot read right it refuses.
func resolveWithoutSSH(o Options) (*Config, error) {
	files, err := readConfigFiles(o.ConfigFile)
	if err != nil {
		return nil, err
	}
	own, err := o.settings()
	if err != nil {
		return nil, err
	}
	defaults := fallbackDefaults()
	alias := own.get("host")
	s := settings{"host": own["host"]}
	for _, key := range fallbackKeys() {
		if values := firstValues(files, own, alias, key); len(values) > 0 {
			s[key] = values[:1]
		} else if d, ok := defaults[key]; ok {
			s[key] = d
		}
	}
	for _, key := range []string{"identityfile", "certificatefile", "sendenv", "setenv",
		"localforward", "remoteforward", "dynamicforward"} {
		s[key] = allValues(files, own, alias, key)
	}
	if len(s["identityfile"]) == 0 {
		s["identityfile"] = defaults["identityfile"]
	}
	if err := s.complete(alias); err != nil {
		return nil, err
	}
	return newConfig(o, s, defaults)
}

// settings are the flags as ssh_config keywords. ssh lets what comes first win.
func (o Options) settings() (settings, error) {
	s := settings{"host": {o.host()}}
	add := func(key, value string) {
		if value != "" {
			s[key] = append(s[key], value)
		}
	}
	if o.Port != 0 {
		add("port", strconv.Itoa(o.Port))
	}
	add("user", o.User)
	rest, isURI := strings.CutPrefix(o.Destination, "ssh://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		add("user", rest[:i])
		rest = rest[i+1:]
	}
	if _, port, ok := strings.Cut(rest[strings.LastIndexByte(rest, ']')+1:], ":"); isURI && ok {
		add("port", strings.TrimSuffix(port, "/"))
	}
	s["identityfile"] = o.Identities
	s["localforward"], s["remoteforward"], s["dynamicforward"] = o.LocalForwards, o.RemoteForwards, o.DynamicForwards
	add("proxyjump", o.JumpHosts)
	add("addressfamily", o.AddressFamily)
	for _, option := range o.Options {
		i := strings.IndexAny(option, "= \t")
		if i <= 0 {
			return nil, &ConfigError{Problem: fmt.Sprintf("bad option %q", option), Advice: "write -o Keyword=value"}
		}
		add(strings.ToLower(option[:i]), strings.Trim(option[i:], "= \t"))
	}
	return s, nil
}

func readConfigFiles(file string) ([]*ssh_config.Config, error) {
	if file != "" {
		if strings.EqualFold(file, "none") || file == os.DevNull {
			return nil, nil
		}
		c, err := readConfigFile(file)
		return []*ssh_config.Config{c}, err
	}
	home, err := homeDir()
	if err != nil {
		return nil, &ConfigError{Problem: "no home directory", Advice: "name the configuration with -F", Err: err}
	}
	var files []*ssh_config.Config
	for _, path := range []string{filepath.Join(home, ".ssh", "config"), filepath.Join(systemConfigDir(), "ssh_config")} {
		c, err := readConfigFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, c)
	}
	return files, nil
}

func readConfigFile(path string) (*ssh_config.Config, error) {
	advice := "install OpenSSH's client, which reads all of ssh_config, or name a simpler file with -F"
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &ConfigError{Problem: fmt.Sprintf("cannot read %q", path), Advice: advice, Err: err}
	}
	c, err := ssh_config.DecodeBytes(data)
	if err == nil {
		err = refuseMatch(data, 0)
	}
	if err != nil {
		return nil, &ConfigError{Problem: fmt.Sprintf("cannot understand %q without ssh", path), Advice: advice, Err: err}
	}
	return c, nil
}

// refuseMatch finds a Match, here or in an included file, that the library
// reads otherwise than ssh: it compares `Match host` with the name as typed.
func refuseMatch(data []byte, depth int) error {
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(strings.Replace(line, "=", " ", 1))
		if len(words) < 2 {
			continue
		}
		switch strings.ToLower(words[0]) {
		case "match":
			if len(words) > 2 || !strings.EqualFold(words[1], "all") {
				return fmt.Errorf("unsupported %q", strings.TrimSpace(line))
			}
		case "include":
			if err := refuseMatchIn(words[1:], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseMatchIn looks into the files that an Include names; a relative path is
// in ~/.ssh.
func refuseMatchIn(patterns []string, depth int) error {
	if depth > maxIncludeDepth {
		return errors.New("too many levels of Include")
	}
	home, err := homeDir()
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		pattern, err := expandTilde(strings.Trim(pattern, `"`))
		if err != nil {
			return err
		}
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(home, ".ssh", pattern)
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := refuseMatch(data, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func firstValues(files []*ssh_config.Config, own settings, alias, key string) []string {
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

func allValues(files []*ssh_config.Config, own settings, alias, key string) []string {
	all := slices.Clone(own[key])
	for _, f := range files {
		v, _ := f.GetAll(alias, key)
		all = append(all, v...)
	}
	return all
}

// complete does what ssh -G would have done to the values: %h in HostName,
// tildes in lists of files, the user's name. It refuses the rest.
func (s settings) complete(alias string) error {
	if s.get("hostname") == "" {
		s["hostname"] = []string{alias}
	}
	name := strings.NewReplacer("%%", "%", "%h", alias).Replace(s.get("hostname"))
	s["hostname"] = []string{strings.ToLower(name)}
	if s.get("user") == "" {
		name, err := localUser()
		if err != nil {
			return &ConfigError{Problem: "no user name", Advice: "give one with -l", Err: err}
		}
		s["user"] = []string{name}
	}
	for _, key := range []string{"hostkeyalgorithms", "casignaturealgorithms", "pubkeyacceptedalgorithms",
		"kexalgorithms", "ciphers", "macs", "identityagent", "remotecommand", "userknownhostsfile", "globalknownhostsfile"} {
		if v := s.get(key); v != "" && (strings.ContainsAny(v[:1], "+-^") || strings.Contains(v, "%")) {
			return &ConfigError{
				Problem: fmt.Sprintf("cannot understand %s %q without ssh", key, v),
				Advice:  "install OpenSSH's client, or write the value in full in ssh_config",
			}
		}
	}
	return s.expandFiles()
}

func (s settings) expandFiles() error {
	for _, key := range []string{"userknownhostsfile", "globalknownhostsfile", "identityagent"} {
		words := strings.Fields(s.get(key))
		for i := range words {
			path, err := expandTilde(words[i])
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
