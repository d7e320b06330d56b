package main

import (
	"time"

	"github.com/spf13/pflag"
)

// defaultLinger is how long a shared bridge stays when nobody uses it any more:
// the next git push is often less than a minute away.
const defaultLinger = time.Minute

// proxyFlags is the command line of gpg-bridge proxy.
type proxyFlags struct {
	local  localFlags
	remote remoteFlags

	alias  string
	user   string
	config string
	via    string
	jump   string
	linger time.Duration

	fdpass bool
	quiet  bool
}

// addPumpTo adds the flags that are about nothing but the proxy's own process.
func (f *proxyFlags) addPumpTo(flags *pflag.FlagSet) {
	flags.BoolVar(&f.fdpass, "fdpass", false, "ssh_config has ProxyUseFdpass yes (default: if our parent's name is ssh, and it looks like that)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "never say that there is no bridge")
}

func (f *proxyFlags) addTo(flags *pflag.FlagSet) {
	f.local.addTo(flags)
	f.remote.addTo(flags)
	flags.StringVar(&f.alias, "alias", "", "the host's `name` in ssh_config: %n there (default: the host)")
	flags.StringVar(&f.user, "user", "", "the `user` to log in as: %r in ssh_config")
	flags.StringVarP(&f.config, "config", "F", "", "the ssh_config `file`, if ssh was given one")
	flags.StringVar(&f.via, "via", "", "reach the host through this `command`, as a ProxyCommand would")
	flags.StringVarP(&f.jump, "jump", "J", "", "go through these `hosts`: [user@]host[:port], with commas between")
	flags.DurationVar(&f.linger, "linger", defaultLinger, "how long the bridge stays when nobody uses it any more")
}
