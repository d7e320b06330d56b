package sshsession

import (
	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// A Request is what the user asks gpg-bridge ssh for. What ssh -G can tell of it is in the
// configuration that Words leads to.
type Request struct {
	Spec    target.Spec // of the bridge; of the way to the host, only Host
	Args    []string    // the user's own, as their ssh would get them
	Words   []string    // config.Options.Words
	Command string      // "" for a login shell, or ssh_config's

}

// SSH returns the Request in the form of package config.
func (r *Request) SSH() config.Options {
	return config.Options{Destination: r.Spec.Host, Words: r.Words, Command: r.Command}
}
