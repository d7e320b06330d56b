package sshfwd

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// validHostname says whether a host name may stand in a command line that a
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

// checkNames refuses what OpenSSH's ssh refuses on its command line, whatever
// version of it is asked: these names end up in the commands of ssh_config, of
// Match exec already. What ssh_config itself says is its author's.
func (o Options) checkNames() error {
	user, host := o.userAndHost()
	if !validHostname(host) {
		return &ConfigError{
			Problem: fmt.Sprintf("the host name %q has characters that no host name has", host),
			Advice:  "check where the name comes from; a name in ssh_config may stand for an odd address",
		}
	}
	for _, name := range append(o.usersInOptions(), o.User, user) {
		if !validUser(name) {
			return &ConfigError{
				Problem: fmt.Sprintf("the user name %q has characters that mean something to a shell", name),
				Advice:  "check where the name comes from; set such a name by User in ssh_config",
			}
		}
	}
	return nil
}

// usersInOptions are the values of -o User.
func (o Options) usersInOptions() []string {
	var users []string
	for _, option := range o.Options {
		option = strings.TrimSpace(option)
		if i := strings.IndexAny(option, "= \t"); i > 0 && strings.EqualFold(option[:i], "user") {
			users = append(users, strings.Trim(option[i:], "= \t\""))
		}
	}
	return users
}

// userAndHost takes the destination apart; the user is "" if there is none.
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
