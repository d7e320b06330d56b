package config

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// host is the destination without scheme, user and port: %n.
func (o Options) host() string {
	rest, isURI := strings.CutPrefix(o.Destination, "ssh://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	if !isURI {
		return rest
	}
	rest, _, _ = strings.Cut(rest, "/")
	if strings.HasPrefix(rest, "[") {
		rest, _, _ = strings.Cut(rest[1:], "]")
		return rest
	}
	rest, _, _ = strings.Cut(rest, ":")
	return rest
}

// expandPath expands ~, ${NAME} and the tokens of IdentityFile and
// CertificateFile (ssh_config(5), TOKENS), which ssh -G leaves as they are.
func (c *Config) expandPath(raw string) (string, error) {
	path, err := Expand(raw, c.Token, true)
	if err != nil {
		return "", err
	}
	return ExpandTilde(path)
}

// Expand replaces the tokens of a value by what token returns for them, and ${NAME} if
// environment is set (percent_dollar_expand in OpenSSH's misc.c). Errors are *Error.
func Expand(raw string, token func(byte) (string, error), environment bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '%' && i+1 < len(raw):
			i++
			value, err := token(raw[i])
			if err != nil {
				return "", badExpansion(raw, err)
			}
			b.WriteString(value)
		case environment && strings.HasPrefix(raw[i:], "${"):
			name, _, closed := strings.Cut(raw[i+2:], "}")
			value, set := os.LookupEnv(name)
			if !closed || !set {
				return "", badExpansion(raw, fmt.Errorf("no environment variable %q", name))
			}
			b.WriteString(value)
			i += len(name) + 2
		default:
			b.WriteByte(raw[i])
		}
	}
	return b.String(), nil
}

func badExpansion(raw string, err error) error {
	return &Error{
		Problem: fmt.Sprintf("cannot expand %q", raw),
		Advice:  "write it without in ssh_config",
		Err:     err,
	}
}

// Token returns what %t stands for, if that token means the same for every keyword
// (ssh_config(5), TOKENS). Another one is an error.
func (c *Config) Token(t byte) (string, error) {
	switch t {
	case '%':
		return "%", nil
	case 'C':
		return c.connectionHash()
	case 'd':
		return homeDir()
	case 'h':
		return c.Hostname, nil
	case 'i':
		return strconv.Itoa(os.Getuid()), nil
	case 'j':
		return c.ProxyJump, nil
	case 'k':
		return cmp.Or(c.HostKeyAlias, c.OriginalHost), nil
	case 'l', 'L':
		name, err := os.Hostname()
		if t == 'L' {
			name, _, _ = strings.Cut(name, ".")
		}
		return name, err
	case 'n':
		return c.OriginalHost, nil
	case 'p':
		return strconv.Itoa(c.Port), nil
	case 'r':
		return c.User, nil
	case 'u':
		return localUser()
	}
	return "", fmt.Errorf("unknown token %q", "%"+string(rune(t)))
}

// ExpandTilde replaces a ~ or ~user that a path begins with.
func ExpandTilde(path string) (string, error) {
	if !strings.HasPrefix(path, "~") {
		return path, nil
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	if name == "" {
		home, err := homeDir()
		return filepath.Join(home, rest), err
	}
	u, err := user.Lookup(name)
	if err != nil {
		return "", badExpansion(path, err)
	}
	return filepath.Join(u.HomeDir, rest), nil
}

// homeDir is the home in the user database, as for ssh, whatever HOME says.
func homeDir() (string, error) {
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && u.HomeDir != "" {
		return u.HomeDir, nil
	}
	return os.UserHomeDir()
}

// localUser is the account's name, without the domain that Windows puts before it.
func localUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username[strings.LastIndexByte(u.Username, '\\')+1:], nil
}

// connectionHash is the token %C: ssh_connection_hash in OpenSSH's readconf.c.
// Since OpenSSH 9.6 it also covers ProxyJump: without a ProxyJump old and new agree,
// with one we cannot know which is meant.
func (c *Config) connectionHash() (string, error) {
	if c.hash != "" {
		return c.hash, nil
	}
	if c.ProxyJump != "" {
		return "", fmt.Errorf("with ProxyJump, %%C depends on the version of ssh")
	}
	host, err := os.Hostname()
	sum := sha1.Sum([]byte(host + c.Hostname + strconv.Itoa(c.Port) + c.User))
	return hex.EncodeToString(sum[:]), err
}
