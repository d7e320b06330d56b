package config

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// DisplayName is what ssh calls the host in its questions.
func (c *Config) DisplayName() string { return cmp.Or(c.HostKeyAlias, c.Hostname) }

// Match reports whether a pattern matches the whole name: * stands for any characters, ?
// for one. It backtracks to the last * only, so that no pattern takes exponential time.
func Match(name, pattern string) bool {
	star, mark := -1, 0
	n, p := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			n, p = n+1, p+1
		case star >= 0:
			mark++
			n, p = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// validHostname reports whether a host name may stand in a command line that a
// shell reads (ssh_valid_hostname in OpenSSH's readconf.c, CVE-2023-51385).
func validHostname(name string) bool {
	bad := func(r rune) bool {
		return strings.ContainsRune("'`\"$\\;&<>|(){},", r) || unicode.IsSpace(r) || unicode.IsControl(r)
	}
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, bad)
}

// validUser is the same for a remote user's name (ssh_valid_ruser). A
// backslash may stand in it, as in DOMAIN\user, but not at its end.
func validUser(name string) bool {
	bad := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune("'`\";&<>|(){}", r) }
	return !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, `\`) &&
		!strings.Contains(name, " -") && !strings.ContainsFunc(name, bad)
}

// checkNames refuses the names that a recent OpenSSH refuses on its command line, whatever
// the version that will be asked: they end up in the commands of ssh_config, first in
// those of Match exec. Names in ssh_config itself are its author's business.
func (o Options) checkNames() error {
	user, host := o.userAndHost()
	if !validHostname(host) {
		return &Error{
			Problem: fmt.Sprintf("the host name %q has characters that no host name has", host),
			Advice:  "check where the name comes from; a name in ssh_config may stand for an odd address",
		}
	}
	for _, name := range append(o.users(), user) {
		if !validUser(name) {
			return &Error{
				Problem: fmt.Sprintf("the user name %q has characters that mean something to a shell", name),
				Advice:  "check where the name comes from; set such a name by User in ssh_config",
			}
		}
	}
	return nil
}

// users are the values of -l and of -o User.
func (o Options) users() []string {
	line := o.line()
	users := line.Values('l')
	for _, option := range line.Values('o') {
		option = strings.TrimSpace(option)
		if i := strings.IndexAny(option, "= \t"); i > 0 && strings.EqualFold(option[:i], "user") {
			users = append(users, strings.Trim(option[i:], "= \t\""))
		}
	}
	return users
}

// userAndHost splits the destination; the user is "" if it names none.
func (o Options) userAndHost() (user, host string) {
	rest, isURI := strings.CutPrefix(o.Destination, "ssh://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user = rest[:i]
	}
	if decoded, err := url.PathUnescape(user); isURI && err == nil {
		user = decoded
	}
	return user, o.host()
}
