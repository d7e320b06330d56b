package target

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/config"
)

// The bridge that up starts, with the flags of the proxy in ssh_config, is the same as the one
// that the proxy starts, for which ssh has expanded the tokens.
func TestTargetsOfProxyAndUpAreOne(t *testing.T) {
	at := func(proxyCommand string) *config.Config {
		return &config.Config{
			OriginalHost: "dev", Hostname: "fe80::1%eth0", Port: 2222, User: "alice", ProxyCommand: proxyCommand,
		}
	}
	const via = "nc -x %n %h %p %% %r"
	raw := at("/opt/gpg-bridge proxy --via '" + via + "' --alias %n --user %r %h %p")
	_, err := inner(raw)
	require.NoError(t, err)
	require.Equal(t, via, raw.ProxyCommand)
	given := strings.ReplaceAll("nc -x dev fe80::1%eth0 2222 % alice", "%", "%%") // as the proxy says it

	require.Equal(t, Of(raw, Spec{}, "").ID, Of(at(given), Spec{}, "").ID)
	require.NotEqual(t, Of(raw, Spec{}, "").ID, Of(at(""), Spec{}, "").ID)
}

func TestInnerKnowsTheProxysOwnFlags(t *testing.T) {
	resolved := &config.Config{ProxyCommand: "gpg-bridge proxy --fdpass -q -J gate --keys none %h %p", ProxyUseFdpass: true}
	line, err := inner(resolved)
	require.NoError(t, err)
	spec := Spec{AgentSocket: "/mine"}
	spec.adopt(line)
	require.Equal(t, "none", spec.Keys)
	require.Equal(t, "/mine", spec.AgentSocket)
	require.Empty(t, resolved.ProxyCommand)
	require.Equal(t, "gate", resolved.ProxyJump)
	require.False(t, resolved.ProxyUseFdpass)
}

// A proxy passes the flags about the bridge on to another process, and no others.
func TestProxyLineGivesOnWhatIsAboutTheBridge(t *testing.T) {
	line := NewProxyLine()
	set := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	line.AddFlags(set)
	require.NoError(t, set.Parse([]string{"-q", "--fdpass", "--alias", "dev", "-F", "/c", "--keys=none", "--takeover"}))
	require.Equal(t, []string{"--alias", "dev", "-F", "/c", "--keys", "none", "--takeover"}, line.Args(OfAgent|OfHost|OfProxy))
	require.Equal(t, []string{"--alias", "dev", "-F", "/c", "--fdpass", "--keys", "none", "-q", "--takeover"}, line.Words())
}
