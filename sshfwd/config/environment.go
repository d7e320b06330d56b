package config

import (
	"slices"
	"strings"
)

// Environment returns the variables that ssh would send, in its order: those of
// ours ("NAME=value") whose names match SendEnv, then SetEnv's. Where a name is
// in both, the server takes the last (client_session2_setup in OpenSSH's
// clientloop.c).
func (c *Config) Environment(ours []string) []EnvVar {
	var vars []EnvVar
	for _, assignment := range ours {
		if name, value, ok := strings.Cut(assignment, "="); ok && c.sends(name) {
			vars = append(vars, EnvVar{Name: name, Value: value})
		}
	}
	for _, assignment := range c.SetEnv {
		if name, value, ok := strings.Cut(assignment, "="); ok {
			vars = append(vars, EnvVar{Name: name, Value: value})
		}
	}
	return vars
}

// sends reports whether SendEnv names a variable. A pattern with a minus removes
// the patterns before it that it matches. ssh -G has done so already; without ssh
// it is done here.
func (c *Config) sends(name string) bool {
	var patterns []string
	for _, pattern := range strings.Fields(strings.Join(c.SendEnv, " ")) {
		if removed, ok := strings.CutPrefix(pattern, "-"); ok {
			patterns = slices.DeleteFunc(patterns, func(p string) bool { return Match(p, removed) })
		} else {
			patterns = append(patterns, pattern)
		}
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Match(name, pattern) })
}

// TermName is the type of terminal to ask the host for: SetEnv's TERM, or ours, which is
// "" where it is not set. ssh does so since 8.7.
func (c *Config) TermName(ours string) string {
	for _, assignment := range c.SetEnv {
		if value, ok := strings.CutPrefix(assignment, "TERM="); ok && value != "" {
			return value
		}
	}
	return ours
}

// An EnvVar is one variable for the remote environment. Servers refuse most:
// see AcceptEnv in sshd_config(5).
type EnvVar struct {
	Name, Value string
}
