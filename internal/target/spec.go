package target

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/bridge"
	"gpg-bridge/sshfwd/config"
)

// DefaultLinger is how long a shared bridge stays after its last use: the next git push is often
// less than a minute away.
const DefaultLinger = time.Minute

// A Spec says what a bridge is for and how it behaves, with one field for each flag about it. A
// new flag is added here and in [Spec.flags], and nowhere else. Without flags a Spec has the
// zero value, except for Linger; see [NewSpec].
type Spec struct {
	Host       string   // [user@]host or ssh://[user@]host[:port], as the user has named it
	User       string   // "" for what ssh_config says; so for the others up to Via
	Port       int      // 0 for what ssh_config says
	Identities []string // files
	ConfigFile string   // "none" for no file at all
	Options    []string // ssh_config's, each "Keyword=value" or "Keyword value"
	JumpHosts  string
	Via        string // a ProxyCommand instead of ssh_config's

	AgentSocket       string // "" for where gpgconf says
	AllowUnrestricted bool
	NoCompat          bool

	RemoteSocket string // "" for where gpg on the host looks
	Keys         string // a list, "none", or "" for those of all secret keys
	Takeover     bool

	Linger time.Duration // how long a bridge in the background stays without use
}

// NewSpec returns the Spec of a host without any flags.
func NewSpec(host string) Spec { return Spec{Host: host, Linger: DefaultLinger} }

// Flags are groups of a Spec's flags.
type Flags uint

// The groups. A command has those that mean something to it.
const (
	OfAgent      Flags = 1 << iota // how the local agent is used
	OfHost                         // what is done on the host
	OfWay                          // how the host is reached, as ssh's own flags say it
	OfBackground                   // what only a bridge in the background has
	OfProxy                        // what ssh tells a ProxyCommand, or a ProxyCommand itself has

	All      = OfAgent | OfHost | OfWay | OfBackground
	ForProxy = OfAgent | OfHost | OfProxy // those of gpg-bridge proxy
)

// AddFlags adds the flags of these groups. They write into s, whose values are their defaults.
func (s *Spec) AddFlags(to *pflag.FlagSet, groups Flags) {
	for _, flag := range s.flags() {
		if flag.groups&groups != 0 {
			flag.add(to)
		}
	}
}

type flag struct {
	groups Flags
	add    func(*pflag.FlagSet)
}

// flags returns all flags. Two may write into one field, if no command has both.
func (s *Spec) flags() []flag {
	text := func(field *string, groups Flags, name, short, usage string) flag {
		return flag{groups, func(to *pflag.FlagSet) { to.StringVarP(field, name, short, *field, usage) }}
	}
	many := func(field *[]string, groups Flags, name, short, usage string) flag {
		return flag{groups, func(to *pflag.FlagSet) { to.VarP((*list)(field), name, short, usage) }}
	}
	yes := func(field *bool, groups Flags, name, usage string) flag {
		return flag{groups, func(to *pflag.FlagSet) { to.BoolVar(field, name, *field, usage) }}
	}
	return []flag{
		text(&s.AgentSocket, OfAgent, "agent-socket", "", "the local agent's socket `path` (default: what gpgconf calls agent-extra-socket)"),
		yes(&s.AllowUnrestricted, OfAgent, "allow-unrestricted", "also use a connection that the agent does not restrict: the host may then do all that you may"),
		yes(&s.NoCompat, OfAgent, "no-compat", "pass on what an agent before 2.3.8 refuses to a newer gpg, instead of answering it: gpg then finds no subkeys"),

		text(&s.RemoteSocket, OfHost, "remote-socket", "", "the socket `path` on the host; nothing is then run there to prepare it (default: where its gpg looks)"),
		text(&s.Keys, OfHost, "keys", "", "the public `keys` that the host shall have: a list with commas, or none (default: those of your secret keys)"),
		yes(&s.Takeover, OfHost, "takeover", "replace the live forward of another session"),

		{OfWay, func(to *pflag.FlagSet) { to.VarP((*port)(&s.Port), "port", "p", "the host's `port`") }},
		text(&s.User, OfWay, "login", "l", "the `user` to log in as"),
		many(&s.Identities, OfWay, "identity", "i", "an identity `file`; may be repeated"),
		many(&s.Options, OfWay, "option", "o", "an ssh_config `keyword=value`; may be repeated"),
		text(&s.ConfigFile, OfWay|OfProxy, "config", "F", "the ssh_config `file`"),
		text(&s.JumpHosts, OfWay|OfProxy, "jump", "J", "go through these `hosts`: [user@]host[:port], with commas between"),

		text(&s.Host, OfProxy, "alias", "", "the host's `name` in ssh_config: %n there (default: the host)"),
		text(&s.User, OfProxy, "user", "", "the `user` to log in as: %r in ssh_config"),

		text(&s.Via, OfBackground|OfProxy, "via", "", "reach the host through this `command`, as a ProxyCommand would"),
		{OfBackground | OfProxy, func(to *pflag.FlagSet) {
			to.DurationVar(&s.Linger, "linger", s.Linger, "how long the bridge stays when nobody uses it any more")
		}},
	}
}

// Args returns the flags of these groups that differ from their defaults as the words of a
// command line, from which [Spec.AddFlags] makes the same fields.
func (s Spec) Args(groups Flags) []string {
	plain, filled := newSet(), newSet()
	none := NewSpec("")
	none.AddFlags(plain, groups)
	s.AddFlags(filled, groups)
	return differing(filled, plain)
}

// differing returns as words the flags of filled whose values differ from those of plain. They
// are in the order of their names, and short where there is a short form, as -F.
func differing(filled, plain *pflag.FlagSet) (words []string) {
	filled.VisitAll(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		} else if values[0] == plain.Lookup(f.Name).Value.String() {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		for _, value := range values {
			words = append(words, name)
			if f.NoOptDefVal == "" { // otherwise the flag has no value, as a bool
				words = append(words, value)
			}
		}
	})
	return words
}

// newSet returns a set of flags that prints nothing.
func newSet() *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.Usage = func() {}
	return set
}

// SSH returns the Spec in the form of package config.
func (s Spec) SSH() config.Options {
	var flags []string
	add := func(flag, value string) {
		if value != "" {
			flags = append(flags, flag, value)
		}
	}
	add("-F", s.ConfigFile)
	if s.Port != 0 {
		add("-p", strconv.Itoa(s.Port))
	}
	add("-l", s.User)
	for _, file := range s.Identities {
		add("-i", file)
	}
	add("-J", s.JumpHosts)
	return config.To(s.Host, append(flags, config.OptionFlags(s.Options)...)...)
}

// Local returns the side with the keys.
func (s Spec) Local() *bridge.Local {
	local := &bridge.Local{
		Agent: &agentside.Agent{
			Locator:           &agentside.Locator{AgentSocket: s.AgentSocket},
			AllowUnrestricted: s.AllowUnrestricted,
		},
		NoCompat: s.NoCompat,
	}
	switch s.Keys {
	case "":
	case "none":
		local.NoKeys = true
	default:
		local.Keys = strings.FieldsFunc(s.Keys, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return local
}
