package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// The tokens of IdentityFile, as ssh expands those of ControlPath.
func TestIdentityFileTokens(t *testing.T) {
	t.Setenv("GB_TEST_DIR", "/somewhere")
	for _, c := range []struct{ raw, same string }{
		{"/k/%h/%n/%p/%r/%u/%%", ""}, {"/k/%C", ""}, {"%d/.ssh/id", ""}, {"/k/%i-%L-%l-%k", ""}, {"${GB_TEST_DIR}/id", ""}, {"~/.ssh/%r", ""},
	} {
		options := []string{"HostName=127.0.0.1", "Port=2222", "User=some.one", "IdentityFile=" + c.raw, "ControlPath=" + c.raw}
		config, err := Resolve(t.Context(), To("alias", append([]string{"-F", "none"}, OptionFlags(options)...)...))
		require.NoError(t, err, c.raw)
		out, _, err := program{path: env.Tool(t, "ssh")}.run(t.Context(), "-G", "-F", "none", "-o", options[0], "-o", options[1], "-o", options[2], "-o", options[4], "alias")
		require.NoError(t, err)
		require.Equal(t, []string{parseSettings(out).get("controlpath")}, config.IdentityFiles, c.raw)
	}
}

// ProxyCommandText expands what ProxyCommandLine does, keeps the rest, and never fails.
func TestProxyCommandText(t *testing.T) {
	c := &Config{OriginalHost: "dev", Hostname: "h", User: "u", Port: 7, ProxyCommand: "a %%h %h:%p %r %n %k %x %\xff %"}
	require.Equal(t, "a %h h:7 u dev dev %x %\xff %", c.ProxyCommandText())
	_, err := c.ProxyCommandLine()
	require.ErrorContains(t, err, "unknown token")
}
