package sshfwd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh/knownhosts"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// CheckHostIP needs an address that is not loopback: the machine's own.
func TestCheckHostIP(t *testing.T) {
	ip := ownAddress(t)
	srv := sshd.Start(t, sshd.Config{})
	relay := newStallingProxyOn(t, net.JoinHostPort(ip, "0"), srv.Addr)
	address := net.JoinHostPort(ip, strconv.Itoa(relay.port()))
	key := sshkeys.Parse(t, srv.HostPublicKey)
	hosts := func(t *testing.T, others ...string) string {
		file := filepath.Join(t.TempDir(), "known_hosts")
		text := fmt.Sprintf("[h]:%d %s\n", relay.port(), srv.HostPublicKey)
		require.NoError(t, os.WriteFile(file, []byte(text+strings.Join(others, "")), 0o600))
		return file
	}
	resolved := func(t *testing.T, file string, options ...string) *config.Config {
		c := resolved(t, srv, append(options, "CheckHostIP=yes", "HostName="+ip, fmt.Sprintf("Port=%d", relay.port()), "UserKnownHostsFile="+file)...)
		c.HostKeyAlias = fmt.Sprintf("[h]:%d", relay.port()) // a name that needs no resolver
		c.Hostname = ip
		return c
	}
	stranger := knownhosts.Line([]string{address}, sshkeys.New(t)) + "\n"
	t.Run("new address is remembered", func(t *testing.T) {
		file := hosts(t)
		requireLogin(t, resolved(t, file), nil)
		known, err := knownhosts.New(file)
		require.NoError(t, err)
		require.NoError(t, known(address, env.TCPAddr(1), key))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		requireLogin(t, resolved(t, file), nil)
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
	})
	t.Run("off by default", func(t *testing.T) {
		c := resolved(t, hosts(t, stranger))
		c.CheckHostIP = false
		requireLogin(t, c, nil)
	})
	t.Run("strict", func(t *testing.T) {
		refused := requireNoLogin[*hostkey.Error](t, resolved(t, hosts(t, stranger)), &asker.Script{Answers: []string{"yes"}})
		require.Equal(t, hostkey.Changed, refused.Reason)
		require.Equal(t, 2, refused.Line)
	})
	t.Run("asks", func(t *testing.T) {
		p := &asker.Script{Answers: []string{"yes"}}
		requireLogin(t, resolved(t, hosts(t, stranger), "StrictHostKeyChecking=ask", "BatchMode=no"), p)
		require.Contains(t, p.AllAsked(), "differs from the key for the IP address '"+ip+"'")
		requireNoLogin[*hostkey.Error](t, resolved(t, hosts(t, stranger), "StrictHostKeyChecking=ask", "BatchMode=no"), &asker.Script{Answers: []string{"no"}})
		requireNoLogin[*hostkey.Error](t, resolved(t, hosts(t, stranger), "StrictHostKeyChecking=ask"), nil)
	})
	t.Run("warns", func(t *testing.T) {
		p := &asker.Script{}
		requireLogin(t, resolved(t, hosts(t, stranger), "StrictHostKeyChecking=no"), p)
		require.Contains(t, p.AllNotices(), "differs from the key for the IP address")
	})
}

// ownAddress is an address of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, addr := range addrs {
		if ip, ok := addr.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

func TestConnectionAttempts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	dial := func(attempts string) error {
		c, err := config.Resolve(t.Context(), config.To("127.0.0.1", "-p", strconv.Itoa(port), "-F", "none", "-o", "ConnectionAttempts="+attempts))
		require.NoError(t, err)
		began := time.Now()
		requireNoLogin[*DialError](t, c, nil)
		if took := time.Since(began); attempts == "2" {
			require.GreaterOrEqual(t, took, attemptInterval)
		}
		return err
	}
	require.NoError(t, dial("1"))
	require.NoError(t, dial("2"))
}

func TestConnectionAttemptsFindALateServer(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	srv.Stop()
	c := resolved(t, srv, "ConnectionAttempts=20")
	started := make(chan struct{})
	go func() {
		defer close(started)
		srv.Restart()
	}()
	requireLogin(t, c, nil)
	<-started
}

func TestBindInterface(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	loopback := ""
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = i.Name
		}
	}
	requireLogin(t, resolved(t, srv, "BindInterface="+loopback), nil)
	requireLogin(t, resolved(t, srv, "BindInterface="+loopback, "AddressFamily=inet"), nil)
	requireLogin(t, resolved(t, srv, "BindInterface=nonexistent0", "BindAddress=127.0.0.1"), nil)
	err = requireNoLogin[*DialError](t, resolved(t, srv, "BindInterface=nonexistent0"), nil)
	require.Contains(t, err.Error(), "nonexistent0")
}
