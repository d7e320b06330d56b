package main

import (
	"os"
	"path/filepath"
)

// set returns what a flag without a value does: it sets an ssh_config option
// before those of -o, like ssh's own flags.
func (f *sshFlags) set(option string) func(string) error {
	return func(string) error {
		f.options.Options = append([]string{option}, f.options.Options...)
		return nil
	}
}

// forwardAgent makes the ssh-agent known to the host if ForwardAgent or -A says
// so, and reports whether the session may ask for it. Where there is no agent
// ssh says nothing either.
func (r *sshRun) forwardAgent() bool {
	if !r.config.ForwardAgent {
		return false
	}
	if err := r.client.ForwardAgent(); err != nil {
		r.ui.log(r.flags.verbose).Info("the ssh-agent is not forwarded", "err", err)
		return false
	}
	return true
}

// stateDir is where small things are remembered between runs, "" for nowhere.
func stateDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "gpg-bridge")
}
