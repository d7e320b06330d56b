package main

import (
	"github.com/spf13/pflag"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/bridge"
	"gpg-bridge/sshfwd"
)

// localFlags are those of every command that speaks with the local agent.
type localFlags struct {
	agentSocket       string
	allowUnrestricted bool
	noCompat          bool
}

func (f *localFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.agentSocket, "agent-socket", "", "the local agent's socket `path` (default: what gpgconf calls agent-extra-socket)")
	flags.BoolVar(&f.allowUnrestricted, "allow-unrestricted", false, "also use a connection that the agent does not restrict: the host may then do all that you may")
	flags.BoolVar(&f.noCompat, "no-compat", false, "pass on what an agent before 2.3.8 refuses to a newer gpg, instead of answering it: gpg then finds no subkeys")
}

// local is the side with the keys, as the flags describe it.
func (f *localFlags) local() *bridge.Local {
	return &bridge.Local{
		Agent: &agentside.Agent{
			Locator:           &agentside.Locator{AgentSocket: f.agentSocket},
			AllowUnrestricted: f.allowUnrestricted,
		},
		NoCompat: f.noCompat,
	}
}

// addConnection adds the ssh flags by which a host is reached.
func addConnection(flags *pflag.FlagSet, options *sshfwd.Options) {
	flags.IntVarP(&options.Port, "port", "p", 0, "the host's `port`")
	flags.StringVarP(&options.User, "login", "l", "", "the `user` to log in as")
	flags.StringArrayVarP(&options.Identities, "identity", "i", nil, "an identity `file`; may be repeated")
	flags.StringVarP(&options.ConfigFile, "config", "F", "", "the ssh_config `file`")
	flags.StringArrayVarP(&options.Options, "option", "o", nil, "an ssh_config `keyword=value`; may be repeated")
	flags.StringVarP(&options.JumpHosts, "jump", "J", "", "go through these `hosts`: [user@]host[:port], with commas between")
}
