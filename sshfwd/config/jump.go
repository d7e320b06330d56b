package config

import (
	"fmt"
	"strconv"
	"strings"
)

// JumpOptions are the options for the connection to the last host of ProxyJump, which is
// reached through those before it. ssh runs another ssh with the same. Errors are *Error.
func (c *Config) JumpOptions() (Options, error) {
	before, last, _ := cutLast(c.ProxyJump, ",")
	user, host, port, ok := parseJumpHost(last)
	if !ok || !validHostname(host) || !validUser(user) {
		return Options{}, &Error{
			Problem: fmt.Sprintf("bad jump host %q", last),
			Advice:  "write ProxyJump as [user@]host[:port], with commas between several",
		}
	}
	o := To(host, c.jumpFlags(user, port, before)...)
	o.BatchMode, o.Detached = c.BatchMode, c.Detached
	return o, nil
}

// jumpFlags are the flags with which ssh runs another ssh for a jump host (ssh.c).
func (c *Config) jumpFlags(user string, port int, before string) (flags []string) {
	if user != "" {
		flags = append(flags, "-l", user)
	}
	if port != 0 {
		flags = append(flags, "-p", strconv.Itoa(port))
	}
	if before != "" {
		flags = append(flags, "-J", before)
	}
	if c.ConfigFile != "" {
		flags = append(flags, "-F", c.ConfigFile)
	}
	return flags
}

// cutLast cuts at the last separator; without one all of s is after.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}

// parseJumpHost reads [user@]host[:port], where an IPv6 address stands in
// brackets, and ssh://[user@]host[:port] (parse_user_host_port, parse_ssh_uri
// in OpenSSH's misc.c). The port is 0 if there is none.
func parseJumpHost(spec string) (user, host string, port int, ok bool) {
	spec, isURI := strings.CutPrefix(strings.TrimSpace(spec), "ssh://")
	if isURI {
		spec = strings.TrimSuffix(spec, "/")
	}
	user, rest, hasUser := cutLast(spec, "@")
	if hasUser && user == "" || strings.Contains(rest, "/") {
		return "", "", 0, false
	}
	text := ""
	if strings.HasPrefix(rest, "[") {
		host, text, ok = strings.Cut(rest[1:], "]")
		if text, hasPort := strings.CutPrefix(text, ":"); !ok || (text != "" && !hasPort) {
			return "", "", 0, false
		}
		text = strings.TrimPrefix(text, ":")
	} else {
		host, text, _ = strings.Cut(rest, ":")
	}
	if text != "" {
		if port, ok = parsePort(text); !ok || port == 0 {
			return "", "", 0, false
		}
	}
	return user, host, port, host != ""
}
