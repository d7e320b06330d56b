package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseJumpHost(t *testing.T) {
	type parsed struct {
		user, host string
		port       int
	}
	for spec, want := range map[string]parsed{
		"host":                     {"", "host", 0},
		"me@host":                  {"me", "host", 0},
		"me@corp@host":             {"me@corp", "host", 0},
		"host:2222":                {"", "host", 2222},
		"me@host:2222":             {"me", "host", 2222},
		"[::1]":                    {"", "::1", 0},
		"me@[fe80::1]:22":          {"me", "fe80::1", 22},
		"[10.0.0.1]:24":            {"", "10.0.0.1", 24},
		"ssh://host":               {"", "host", 0},
		"ssh://me@host:2222":       {"me", "host", 2222},
		"ssh://me@[2001:db8::2]:3": {"me", "2001:db8::2", 3},
		"ssh://host/":              {"", "host", 0},
		" host ":                   {"", "host", 0},
	} {
		user, host, port, ok := parseJumpHost(spec)
		require.True(t, ok, spec)
		require.Equal(t, want, parsed{user, host, port}, spec)
	}
	for _, spec := range []string{"", "@host", "me@", "host:0", "host:x", "host:70000", "::1", "[::1", "[::1]x", "[]", "ssh://host/path"} {
		_, _, _, ok := parseJumpHost(spec)
		require.False(t, ok, spec)
	}
}

func TestJumpOptions(t *testing.T) {
	c := &Config{ProxyJump: "one,ssh://u@two:3,me@three:4", ConfigFile: "/f", BatchMode: true}
	o, err := c.JumpOptions()
	require.NoError(t, err)
	require.Equal(t, To("three", "-l", "me", "-p", "4", "-J", "one,ssh://u@two:3", "-F", "/f").Batch(), o)
	for _, bad := range []string{"a b", "-oProxyCommand=x", "$(x)", "a;b@host", "host:x", ","} {
		_, err := (&Config{ProxyJump: bad}).JumpOptions()
		var config *Error
		require.ErrorAs(t, err, &config, bad)
	}
}
