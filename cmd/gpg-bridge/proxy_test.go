package main

import (
	"context"
	"net"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd"
)

func TestJumpArgs(t *testing.T) {
	for _, c := range []struct {
		jump, host string
		want       []string
	}{
		{"gate", "dev", []string{"-W", "[dev]:22", "--", "gate"}},
		{"alice@gate:2222", "dev", []string{"-p", "2222", "-W", "[dev]:22", "--", "alice@gate"}},
		{"a@realm@[::1]:2222", "dev", []string{"-p", "2222", "-W", "[dev]:22", "--", "a@realm@::1"}},
		{"[fe80::1]", "::2", []string{"-W", "[::2]:22", "--", "fe80::1"}},
		{"a,b:3,c", "dev", []string{"-J", "a,b:3", "-W", "[dev]:22", "--", "c"}},
		{"a,ssh://bob@c:4", "dev", []string{"-J", "a", "-W", "[dev]:22", "--", "ssh://bob@c:4"}},
	} {
		p := &proxyRun{flags: &proxyFlags{jump: c.jump}, host: c.host, port: 22}
		require.Equal(t, c.want, p.jumpArgs(), c.jump)
	}
	p := &proxyRun{flags: &proxyFlags{jump: "gate", config: "/c"}, host: "dev", port: 22}
	require.Equal(t, []string{"-F", "/c", "-W", "[dev]:22", "--", "gate"}, p.jumpArgs())
}

// A bridge that up makes from ssh_config, and one that the proxy asks for after
// ssh has replaced the tokens, are one.
func TestTargetsOfProxyAndUpAreOne(t *testing.T) {
	at := func(proxyCommand string) *sshfwd.Config {
		return &sshfwd.Config{
			OriginalHost: "dev", Hostname: "fe80::1%eth0", Port: 2222, User: "alice", ProxyCommand: proxyCommand,
		}
	}
	const via = "nc -x %n %h %p %% %r"
	raw := at("/opt/gpg-bridge proxy --via '" + via + "' --alias %n --user %r %h %p")
	_, err := inner(raw)
	require.NoError(t, err)
	require.Equal(t, via, raw.ProxyCommand)
	given := escapeTokens("nc -x dev fe80::1%eth0 2222 % alice")
	local, remote := &localFlags{}, &remoteFlags{}
	require.Equal(t, newTarget(raw, local, remote).id, newTarget(at(given), local, remote).id)
	require.NotEqual(t, newTarget(raw, local, remote).id, newTarget(at(""), local, remote).id)
}

func TestInnerKnowsTheProxysOwnFlags(t *testing.T) {
	config := &sshfwd.Config{ProxyCommand: "gpg-bridge proxy --fdpass -q -J gate --keys none %h %p", ProxyUseFdpass: true}
	line, err := inner(config)
	require.NoError(t, err)
	flags := &sshFlags{local: localFlags{agentSocket: "/mine"}}
	flags.adopt(line)
	require.Equal(t, "none", flags.remote.keys)
	require.Equal(t, "/mine", flags.local.agentSocket)
	require.Empty(t, config.ProxyCommand)
	require.Equal(t, "gate", config.ProxyJump)
	require.False(t, config.ProxyUseFdpass)
}

func TestBridgeArgs(t *testing.T) {
	var flags proxyFlags
	set := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	flags.addTo(set)
	flags.addPumpTo(set)
	require.NoError(t, set.Parse([]string{"-q", "--fdpass", "--alias", "dev", "-F", "/c", "--keys=none", "--takeover"}))
	require.Equal(t, []string{"--alias=dev", "--config=/c", "--keys=none", "--takeover=true"}, bridgeArgs(set))
}

// A panic beside the pump is not the pump's.
func TestCompanionPanics(t *testing.T) {
	t.Setenv(proxyVariable, "")
	ui := newUI(nil, nil, nil)
	ui.setQuiet(true)
	c := &companion{notices: newNotices(ui, nil)} // no proxy: run must panic
	c.start(t.Context())
	<-c.done
	c.end()
}

func TestCompanionOff(t *testing.T) {
	t.Setenv(proxyVariable, proxyOff)
	c := (&proxyRun{}).newCompanion(nil)
	c.start(context.Background())
	require.Nil(t, c.done)
	c.end()
}

func TestProxyRefusesPorts(t *testing.T) {
	for _, port := range []string{"0", "65536", "ssh", "-1"} {
		_, err := newProxyRun(newUI(nil, nil, nil), &proxyFlags{}, "proxy", []string{"dev", port})
		var usage *usageError
		require.ErrorAs(t, err, &usage)
	}
	_, err := newProxyRun(newUI(nil, nil, nil), &proxyFlags{via: "nc", jump: "gate"}, "proxy", []string{"dev", "22"})
	require.Error(t, err)
}

func TestDialTellsWhy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	p := &proxyRun{host: "127.0.0.1", port: listener.Addr().(*net.TCPAddr).Port}
	_, err = p.dial(t.Context())
	require.ErrorContains(t, err, "connection refused")
	require.NotEmpty(t, hintOf(err))
}
