package sshsession

import (
	"gpg-bridge/internal/target"
	"gpg-bridge/sshfwd/config"
)

// A Request is what the user asks gpg-bridge ssh for.
type Request struct {
	Spec      target.Spec
	Command   string // "" for a login shell, or ssh_config's
	Subsystem bool   // -s: Command is a subsystem's name
	NoShell   bool   // -N
	NoStdin   bool   // -n
	TTY       string // RequestTTY as -t and -T set it, "" without either

	LocalForwards, RemoteForwards, DynamicForwards []string // -L, -R, -D

	Verbosity int  // how many -v
	Quiet     bool // -q
}

// SSH returns the Request in the form of package config.
func (r *Request) SSH() config.Options {
	o := r.Spec.SSH()
	o.LocalForwards, o.RemoteForwards, o.DynamicForwards = r.LocalForwards, r.RemoteForwards, r.DynamicForwards
	o.Command, o.Subsystem = r.Command, r.Subsystem
	return o
}
