package proxy

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/background"
	"gpg-bridge/internal/target"
	"gpg-bridge/internal/ui"
	"gpg-bridge/internal/usertext"
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
		p := &Proxy{line: target.ProxyLine{Spec: target.Spec{JumpHosts: c.jump}}, host: c.host, port: 22}
		require.Equal(t, c.want, p.jumpArgs(), c.jump)
	}
	p := &Proxy{line: target.ProxyLine{Spec: target.Spec{JumpHosts: "gate", ConfigFile: "/c"}}, host: "dev", port: 22}
	require.Equal(t, []string{"-F", "/c", "-W", "[dev]:22", "--", "gate"}, p.jumpArgs())
}

// A panic of the leaseholder does not end the connection.
func TestLeaseholderPanics(t *testing.T) {
	t.Setenv(background.ProxyVariable, "")
	user := ui.New(nil, nil, nil)
	user.OmitWarnings()
	l := &leaseholder{reporter: newReporter(user, nil)} // no proxy: run must panic
	l.start(t.Context())
	<-l.done
	l.end()
}

func TestLeaseholderThatIsOff(t *testing.T) {
	t.Setenv(background.ProxyVariable, background.ProxyOff)
	l := (&Proxy{}).newLeaseholder(nil)
	l.start(context.Background())
	require.Nil(t, l.done)
	l.end()
}

func TestNewRefuses(t *testing.T) {
	for _, port := range []string{"0", "65536", "ssh", "-1"} {
		_, err := New(ui.New(nil, nil, nil), target.NewProxyLine(), "dev", port)
		require.Error(t, err)
	}
	_, err := New(ui.New(nil, nil, nil), target.ProxyLine{Spec: target.Spec{Via: "nc", JumpHosts: "gate"}}, "dev", "22")
	require.Error(t, err)
}

func TestDialTellsWhy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	p := &Proxy{host: "127.0.0.1", port: listener.Addr().(*net.TCPAddr).Port}
	_, err = p.dial(t.Context())
	require.ErrorContains(t, err, "connection refused")
	require.NotEmpty(t, usertext.Hint(err))
}
