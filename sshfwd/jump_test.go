package sshfwd

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
)

// chain is some sshds and an ssh_config that names them one, two, …; each
// knows its key only by its own name.
type chain struct {
	servers []*sshd.Server
	file    string
}

func newChain(t *testing.T, extra string, servers ...*sshd.Server) *chain {
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

func (c *chain) resolve(t *testing.T, o config.Options) *config.Config {
	t.Helper()
	o.Words = append([]string{"-F", c.file}, o.Words...)
	resolved, err := config.Resolve(t.Context(), o)
	require.NoError(t, err)
	return resolved
}

func TestJumpOverTwoHosts(t *testing.T) {
	one, two, three := sshd.Start(t, sshd.Config{}), sshd.Start(t, sshd.Config{}), sshd.Start(t, sshd.Config{})
	for name, extra := range map[string]string{
		"list":         "Host three\n ProxyJump one,two",
		"each its own": "Host three\n ProxyJump two\nHost two\n ProxyJump one",
	} {
		t.Run(name, func(t *testing.T) {
			c := newChain(t, extra, one, two, three)
			logins := strings.Count(one.Log(), "Accepted publickey") + strings.Count(two.Log(), "Accepted publickey")
			requireLogin(t, c.resolve(t, config.To("three")), nil)
			require.Equal(t, logins+2, strings.Count(one.Log(), "Accepted publickey")+strings.Count(two.Log(), "Accepted publickey"))
		})
	}
	t.Run("-J", func(t *testing.T) {
		c := newChain(t, "", one, two, three)
		requireLogin(t, c.resolve(t, config.To("three", "-J", "one,two")), nil)
		requireLogin(t, c.resolve(t, config.To("three", "-J", "none")), nil)
	})
}

// The user is asked about each host, and a forward works on the last one.
func TestJumpAsksForEachHost(t *testing.T) {
	one, two := sshd.Start(t, sshd.Config{}), sshd.Start(t, sshd.Config{})
	known := filepath.Join(t.TempDir(), "known_hosts")
	c := newChain(t, "UserKnownHostsFile "+known+"\nStrictHostKeyChecking ask\nHost two\n ProxyJump one", one, two)
	p := &asker.Script{Answers: []string{"yes", "yes"}}
	resolved := c.resolve(t, config.To("two"))
	client, err := Dial(dialContext(t), resolved, DialOptions{Prompter: p, Log: env.QuietLog()})
	require.NoError(t, err)
	require.Contains(t, p.Asked[0], fmt.Sprintf("[127.0.0.1]:%d ([127.0.0.1]:%d)", one.Port, one.Port))
	require.Contains(t, p.Asked[1], fmt.Sprintf("[127.0.0.1]:%d (<no hostip for proxy command>)", two.Port))
	path := shortSocketPath(t)
	_, err = client.ForwardUnix(testContext(t), path, serveEcho)
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
		resolved := c.resolve(t, config.To("two").Batch())
		refused := requireNoLogin[*ProxyError](t, resolved, &asker.Script{Answers: []string{"yes", "yes"}})
		require.ErrorIs(t, refused, usertext.ErrNoPrompt)
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
		server     sshd.Config
		prohibited bool
	}{
		{"nobody there", sshd.Config{}, false},
		{"AllowTcpForwarding no", sshd.Config{Options: []string{"AllowTcpForwarding no"}}, true},
		{"restrict", sshd.Config{KeyOptions: "restrict"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			chain := newChain(t, "", sshd.Start(t, c.server))
			resolved := chain.resolve(t, config.To("127.0.0.1", "-p", strconv.Itoa(port), "-J", "one"))
			refused := requireNoLogin[*JumpError](t, resolved, nil)
			require.Equal(t, c.prohibited, refused.Prohibited)
			require.Equal(t, port, refused.Port)
		})
	}
	t.Run("unknown name", func(t *testing.T) {
		chain := newChain(t, "", sshd.Start(t, sshd.Config{}))
		resolved := chain.resolve(t, config.To("no-such-host.invalid", "-J", "one"))
		require.False(t, requireNoLogin[*JumpError](t, resolved, nil).Prohibited)
	})
}

func TestJumpHostIsNotThere(t *testing.T) {
	resolved, err := config.Resolve(t.Context(), config.To("x", "-F", "none", "-J", "127.0.0.1:1"))
	require.NoError(t, err)
	refused := requireNoLogin[*ProxyError](t, resolved, nil)
	require.Equal(t, `through jump host "127.0.0.1": cannot connect to 127.0.0.1:1: connection refused`, refused.Error())
}

func TestJumpLoops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte("Host a\n ProxyJump b\nHost b\n ProxyJump a\n"), 0o600))
	resolved, err := config.Resolve(t.Context(), config.To("a", "-F", file))
	require.NoError(t, err)
	require.Contains(t, requireNoLogin[*config.Error](t, resolved, nil).Error(), "too many jump hosts")
}

// What the jump host connects to accepts and says nothing; a channel has no deadlines.
func TestJumpToABlackHole(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	chain := newChain(t, "", sshd.Start(t, sshd.Config{}))
	resolved := chain.resolve(t, config.To("127.0.0.1", "-p", strconv.Itoa(silent.Addr().(*net.TCPAddr).Port), "-J", "one", "-o", "ConnectTimeout=1"))
	require.ErrorIs(t, requireNoLogin[*ProxyError](t, resolved, nil), ErrNoAnswer)

	t.Run("cancelled", func(t *testing.T) {
		resolved.ConnectTimeout = 0
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := Dial(ctx, resolved, DialOptions{Log: env.QuietLog()})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestJumpHostDies(t *testing.T) {
	one, two := sshd.Start(t, sshd.Config{}), sshd.Start(t, sshd.Config{})
	chain := newChain(t, "Host two\n ProxyJump one", one, two)
	client, err := Dial(dialContext(t), chain.resolve(t, config.To("two")), DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	one.KillSessions()
	var lost *link.LostError
	require.ErrorAs(t, client.Wait(), &lost)
	require.NoError(t, client.Close())
}

// The keepalives of the connection to the jump host end what runs through it, and the error
// says so.
func TestJumpHostGoesSilent(t *testing.T) {
	one, two := sshd.Start(t, sshd.Config{}), sshd.Start(t, sshd.Config{})
	proxy := newStallingProxy(t, one.Addr)
	chain := newChain(t, fmt.Sprintf("Host one\n ServerAliveInterval 1\n ServerAliveCountMax 1\n Port %d\n HostKeyAlias [127.0.0.1]:%d\nHost two\n ProxyJump one", proxy.port(), one.Port), one, two)
	client, err := Dial(dialContext(t), chain.resolve(t, config.To("two")), DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	proxy.stall()
	err = client.Wait()
	var lost *link.LostError
	require.ErrorAs(t, err, &lost)
	require.ErrorIs(t, err, ErrNoAnswer)
	require.Contains(t, err.Error(), `jump host "one"`)
	require.NoError(t, client.Close())
}

// stallingProxy passes bytes on until it is told to stop, without closing anything.
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
