package sshmaster

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gpg-bridge/sshfwd/config"
)

// idle is how long the master stays without use, if the user's ssh_config does not say. We keep
// it in use for as long as we live, so it counts only when we were killed, and for a session
// that has gone to the background.
const idle = 10 * time.Second

// A route replaces a way to the host that leads through gpg-bridge proxy, which would bring up
// another bridge. Its fields are ssh_config's, with tokens.
type Route struct {
	Replace                 bool
	ProxyCommand, ProxyJump string // one of them, or neither: connect directly
}

func (r Route) options() []string {
	switch {
	case !r.Replace:
		return nil
	case r.ProxyJump != "":
		return option("ProxyJump", r.ProxyJump)
	case r.ProxyCommand != "":
		return option("ProxyCommand", r.ProxyCommand)
	}
	return option("ProxyCommand", "none")
}

// loginArgs are the arguments of the ssh that logs in, shares its connection at controlPath and
// goes to the background. It is auto, since with yes ssh does not replace a socket that a killed
// ssh has left (muxclient in OpenSSH's mux.c), and then shares nothing. ControlPersist takes it
// to the background.
func (o *Options) loginArgs(controlPath string) []string {
	args := slices.Concat(option("ControlMaster", "auto"), controlOption(controlPath), o.checkingOption(), o.Route.options())
	if o.Stays {
		line := o.Line.Without('M', 'S')
		return slices.Concat(args, option("ControlPersist", "no"), line.Words(), line.Command)
	}
	if !o.persists(controlPath) {
		args = append(args, option("ControlPersist", strconv.Itoa(int(idle.Seconds())))...)
	}
	if IsFork(o.Config) { // then this ssh knows the keyword, which is younger than -f
		args = append(args, option("ForkAfterAuthentication", "no")...)
	}
	line := o.Line.Without('M', 'S', 'N', 's', 'f', 't', 'T')
	return slices.Concat(args, []string{"-N", "-T"}, line.Words())
}

// checkingOption has ssh refuse a changed host key where StrictHostKeyChecking no would have it
// only warn, as our own client does: the host gets the agent. New keys are taken as the user wants.
func (o *Options) checkingOption() []string {
	if o.Config.StrictHostKeyChecking != config.StrictNo {
		return nil
	}
	return option("StrictHostKeyChecking", string(config.StrictAcceptNew))
}

// persists reports whether the user's ssh_config has a connection that is shared there stay when
// it is not used.
func (o *Options) persists(controlPath string) bool {
	return controlPath == o.Config.ControlPath && o.Config.ControlPersists
}

// IsFork reports whether the session is to go to the background, by -f or ssh_config.
func IsFork(c *config.Config) bool {
	return slices.ContainsFunc(c.Lacks, func(l config.Lack) bool { return l.Keyword == config.Fork })
}

// sessionArgs are the arguments of the ssh that is the session. The first has made the user's
// forwards already. If its connection is lost, this one makes no other, unless it may connect. The
// flags without are left out.
func (o *Options) sessionArgs(controlPath string, mayConnect bool, without ...byte) []string {
	args := slices.Concat(option("ControlMaster", "no"), controlOption(controlPath), option("ClearAllForwardings", "yes"))
	if mayConnect {
		args = slices.Concat(args, o.checkingOption(), o.Route.options())
	} else {
		args = append(args, option("ProxyCommand", "false")...)
	}
	line := o.Line.Without(append(without, 'M', 'S')...)
	return slices.Concat(args, line.Words(), line.Command)
}

func option(keyword, value string) []string { return []string{"-o" + keyword + "=" + value} }

// controlOption quotes a path for ssh_config: it has no tokens any more.
func controlOption(path string) []string {
	path = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(path)
	return option("ControlPath", `"`+path+`"`)
}
