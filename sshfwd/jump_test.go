package sshfwd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
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
	o, err := c.jumpOptions()
	require.NoError(t, err)
	require.Equal(t, Options{Destination: "three", User: "me", Port: 4, JumpHosts: "one,ssh://u@two:3", ConfigFile: "/f", BatchMode: true}, o)
	for _, bad := range []string{"a b", "-oProxyCommand=x", "$(x)", "a;b@host", "host:x", ","} {
		_, err := (&Config{ProxyJump: bad}).jumpOptions()
		var config *ConfigError
		require.ErrorAs(t, err, &config, bad)
	}
}

// chain is some sshds and an ssh_config that names them one, two, …; each
// knows its key only by its own name.
type chain struct {
	servers []*sshdtest.Server
	file    string
}

func newChain(t *testing.T, extra string, servers ...*sshdtest.Server) *chain {
	t.Helper()
	var text strings.Builder
	text.WriteString(extra + "\n")
	for i, s := range servers {
		fmt.Fprintf(&text, "Host %s\n  HostName %s\n  Port %d\n  User %s\n  IdentityFile %s\n  UserKnownHostsFile %s\n",
			[]string{"one", "two", "three"}[i], s.Host, s.Port, s.User, s.ClientKeyFile, s.KnownHosts)
	}
	text.WriteString("Host *\n  GlobalKnownHostsFile /dev/null\n  IdentitiesOnly yes\n  IdentityAgent none\n" +
		"  PreferredAuthentications publickey\n  StrictHostKeyChecking yes\n")
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return &chain{servers, file}
}

func (c *chain) resolve(t *testing.T, o Options) *Config {
	t.Helper()
	o.ConfigFile = c.file
	config, err := Resolve(t.Context(), o)
	require.NoError(t, err)
	return config
}

func TestJumpOverTwoHosts(t *testing.T) {
	one, two, three := sshdtest.Start(t, sshdtest.Config{}), sshdtest.Start(t, sshdtest.Config{}), sshdtest.Start(t, sshdtest.Config{})
	for name, extra := range map[string]string{
		"list":         "Host three\n ProxyJump one,two",
		"each its own": "Host three\n ProxyJump two\nHost two\n ProxyJump one",
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, extra, one, two, three)
			logins := strings.Count(one.Log(), "Accepted publickey") + strings.Count(two.Log(), "Accepted publickey")
			requireLogin(t, c.resolve(t, Options{Destination: "three"}), nil)
			require.Equal(t, logins+2, strings.Count(one.Log(), "Accepted publickey")+strings.Count(two.Log(), "Accepted publickey"))
		})
	}
	t.Run("-J", func(t *testing.T) {
		c := newChain(t, "", one, two, three)
		requireLogin(t, c.resolve(t, Options{Destination: "three", JumpHosts: "one,two"}), nil)
		requireLogin(t, c.resolve(t, Options{Destination: "three", JumpHosts: "none"}), nil)
	})
}

// Whoever is asked is asked for each host, and a forward works at the far end.
func TestJumpAsksForEachHost(t *testing.T) {
	one, two := sshdtest.Start(t, sshdtest.Config{}), sshdtest.Start(t, sshdtest.Config{})
	known := filepath.Join(t.TempDir(), "known_hosts")
	c := newChain(t, "UserKnownHostsFile "+known+"\nStrictHostKeyChecking ask\nHost two\n ProxyJump one", one, two)
	p := &script{answers: []string{"yes", "yes"}}
	config := c.resolve(t, Options{Destination: "two"})
	client, err := Dial(dialContext(t), config, p, quietLog())
	require.NoError(t, err)
	require.Contains(t, p.asked[0], fmt.Sprintf("[127.0.0.1]:%d ([127.0.0.1]:%d)", one.Port, one.Port))
	require.Contains(t, p.asked[1], fmt.Sprintf("[127.0.0.1]:%d (<no hostip for proxy command>)", two.Port))
	path := shortSocketPath(t)
	_, err = client.Forward(testContext(t), path, serveEcho)
	require.NoError(t, err)
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	_, err = conn.Write([]byte("through"))
	require.NoError(t, err)
	got := make([]byte, 7)
	_, err = conn.Read(got)
	require.NoError(t, err)
	require.Equal(t, "through", string(got))
	require.NoError(t, conn.Close())
	require.NoError(t, client.Close())
	require.NoError(t, client.Wait())

	t.Run("BatchMode", func(t *testing.T) {
		require.NoError(t, os.Remove(known))
		config := c.resolve(t, Options{Destination: "two", BatchMode: true})
		refused := requireNoLogin[*ProxyError](t, config, &script{answers: []string{"yes", "yes"}})
		require.ErrorIs(t, refused, ErrNoPrompt)
		require.Contains(t, refused.Error(), `through jump host "one"`)
	})
}

func TestJumpHostRefuses(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	port := closed.Addr().(*net.TCPAddr).Port
	for _, c := range []struct {
		name       string
		server     sshdtest.Config
		prohibited bool
	}{
		{"nobody there", sshdtest.Config{}, false},
		{"AllowTcpForwarding no", sshdtest.Config{Options: []string{"AllowTcpForwarding no"}}, true},
		{"restrict", sshdtest.Config{KeyOptions: "restrict"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := newChain(t, "", sshdtest.Start(t, c.server))
			config := chain.resolve(t, Options{Destination: "127.0.0.1", Port: port, JumpHosts: "one"})
			refused := requireNoLogin[*JumpError](t, config, nil)
			require.Equal(t, c.prohibited, refused.Prohibited)
			require.Equal(t, port, refused.Port)
		})
	}
	t.Run("unknown name", func(t *testing.T) {
		chain := newChain(t, "", sshdtest.Start(t, sshdtest.Config{}))
		config := chain.resolve(t, Options{Destination: "no-such-host.invalid", JumpHosts: "one"})
		require.False(t, requireNoLogin[*JumpError](t, config, nil).Prohibited)
	})
}

func TestJumpHostIsNotThere(t *testing.T) {
	config, err := Resolve(t.Context(), Options{Destination: "x", ConfigFile: "none", JumpHosts: "127.0.0.1:1"})
	require.NoError(t, err)
	refused := requireNoLogin[*ProxyError](t, config, nil)
	require.Equal(t, `through jump host "127.0.0.1": cannot connect to 127.0.0.1:1: connection refused`, refused.Error())
}

func TestJumpLoops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte("Host a\n ProxyJump b\nHost b\n ProxyJump a\n"), 0o600))
	config, err := Resolve(t.Context(), Options{Destination: "a", ConfigFile: file})
	require.NoError(t, err)
	require.Contains(t, requireNoLogin[*ConfigError](t, config, nil).Error(), "too many jump hosts")
}

// What lies behind the jump host accepts and says nothing: there are no
// deadlines on a channel.
func TestJumpToABlackHole(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	chain := newChain(t, "", sshdtest.Start(t, sshdtest.Config{}))
	config := chain.resolve(t, Options{
		Destination: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port, JumpHosts: "one", Options: []string{"ConnectTimeout=1"},
	})
	require.ErrorIs(t, requireNoLogin[*ProxyError](t, config, nil), ErrNoAnswer)

	t.Run("cancelled", func(t *testing.T) {
		config.ConnectTimeout = 0
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := Dial(ctx, config, nil, quietLog())
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestJumpHostDies(t *testing.T) {
	one, two := sshdtest.Start(t, sshdtest.Config{}), sshdtest.Start(t, sshdtest.Config{})
	chain := newChain(t, "Host two\n ProxyJump one", one, two)
	client, err := Dial(dialContext(t), chain.resolve(t, Options{Destination: "two"}), nil, quietLog())
	require.NoError(t, err)
	one.KillSessions()
	var lost *LostError
	require.ErrorAs(t, client.Wait(), &lost)
	require.NoError(t, client.Close())
}

// Keepalives of the jump host's own end what runs through it, and say so.
func TestJumpHostGoesSilent(t *testing.T) {
	one, two := sshdtest.Start(t, sshdtest.Config{}), sshdtest.Start(t, sshdtest.Config{})
	proxy := newStallingProxy(t, one.Addr)
	chain := newChain(t, fmt.Sprintf("Host one\n ServerAliveInterval 1\n ServerAliveCountMax 1\n Port %d\n HostKeyAlias [127.0.0.1]:%d\nHost two\n ProxyJump one", proxy.port(), one.Port), one, two)
	client, err := Dial(dialContext(t), chain.resolve(t, Options{Destination: "two"}), nil, quietLog())
	require.NoError(t, err)
	proxy.stall()
	err = client.Wait()
	var lost *LostError
	require.ErrorAs(t, err, &lost)
	require.ErrorIs(t, err, ErrNoAnswer)
	require.Contains(t, err.Error(), `jump host "one"`)
	require.NoError(t, client.Close())
}

// stallingProxy passes bytes on until it is told to hold its tongue, without
// closing anything.
type stallingProxy struct {
	listener net.Listener
	to       string
	stalled  chan struct{}
	wg       sync.WaitGroup
}

func newStallingProxy(t *testing.T, to string) *stallingProxy {
	t.Helper()
	return newStallingProxyOn(t, "127.0.0.1:0", to)
}

func newStallingProxyOn(t *testing.T, listen, to string) *stallingProxy {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	require.NoError(t, err)
	p := &stallingProxy{listener: l, to: to, stalled: make(chan struct{})}
	p.wg.Go(p.serve)
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() })
	return p
}

func (p *stallingProxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }
func (p *stallingProxy) stall()    { close(p.stalled) }

func (p *stallingProxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		p.wg.Go(func() { p.pass(in, out) })
		p.wg.Go(func() { p.pass(out, in) })
	}
}

func (p *stallingProxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-p.stalled: // read on, so as to see the end, and pass nothing
			continue
		default:
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
