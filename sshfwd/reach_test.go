package sshfwd

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
)

// CheckHostIP needs an address that is not loopback: the machine's own.
func TestCheckHostIP(t *testing.T) {
	ip := ownAddress(t)
	srv := sshdtest.Start(t, sshdtest.Config{})
	relay := newStallingProxyOn(t, net.JoinHostPort(ip, "0"), srv.Addr)
	name := hostName(ip, relay.port())
	key, ok := parseKnownKey(srv.HostPublicKey)
	require.True(t, ok)
	hosts := func(t *testing.T, others ...string) string {
		file := filepath.Join(t.TempDir(), "known_hosts")
		text := fmt.Sprintf("[h]:%d %s\n", relay.port(), srv.HostPublicKey)
		require.NoError(t, os.WriteFile(file, []byte(text+strings.Join(others, "")), 0o600))
		return file
	}
	config := func(t *testing.T, file string, options ...string) *Config {
		c := resolved(t, srv, append(options, "CheckHostIP=yes", "HostName="+ip, fmt.Sprintf("Port=%d", relay.port()), "UserKnownHostsFile="+file)...)
		c.HostKeyAlias = fmt.Sprintf("[h]:%d", relay.port()) // a name that needs no resolver
		c.Hostname = ip
		return c
	}
	stranger := string(knownHostEntry(name, newKey(t), false))
	t.Run("new address is remembered", func(t *testing.T) {
		file := hosts(t)
		requireLogin(t, config(t, file), nil)
		v, _ := check(keysFor(mustRead(t, file), name), key)
		require.Equal(t, hostKnown, v)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		requireLogin(t, config(t, file), nil)
		again, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
	})
	t.Run("off by default", func(t *testing.T) {
		c := config(t, hosts(t, stranger))
		c.CheckHostIP = false
		requireLogin(t, c, nil)
	})
	t.Run("strict", func(t *testing.T) {
		refused := requireNoLogin[*HostKeyError](t, config(t, hosts(t, stranger)), &script{answers: []string{"yes"}})
		require.Equal(t, KeyChanged, refused.Reason)
		require.Equal(t, 2, refused.Line)
	})
	t.Run("asks", func(t *testing.T) {
		p := &script{answers: []string{"yes"}}
		requireLogin(t, config(t, hosts(t, stranger), "StrictHostKeyChecking=ask", "BatchMode=no"), p)
		require.Contains(t, p.allAsked(), "differs from the key for the IP address '"+ip+"'")
		requireNoLogin[*HostKeyError](t, config(t, hosts(t, stranger), "StrictHostKeyChecking=ask", "BatchMode=no"), &script{answers: []string{"no"}})
		requireNoLogin[*HostKeyError](t, config(t, hosts(t, stranger), "StrictHostKeyChecking=ask"), nil)
	})
	t.Run("warns", func(t *testing.T) {
		p := &script{}
		requireLogin(t, config(t, hosts(t, stranger), "StrictHostKeyChecking=no"), p)
		require.Contains(t, p.allNotices(), "differs from the key for the IP address")
	})
}

func mustRead(t *testing.T, file string) []knownHostsLine {
	t.Helper()
	lines, unreadable := readKnownHosts([]string{file})
	require.Empty(t, unreadable)
	return lines
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
		c, err := Resolve(t.Context(), Options{Destination: "127.0.0.1", Port: port, ConfigFile: "none", Options: []string{"ConnectionAttempts=" + attempts}})
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
	srv := sshdtest.Start(t, sshdtest.Config{})
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
	srv := sshdtest.Start(t, sshdtest.Config{})
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

func TestRefusedConfigurations(t *testing.T) {
	base := "hostname h\nuser u\nport 22\n"
	for _, text := range []string{
		"ciphers ", "macs ", "kexalgorithms ", "hostkeyalgorithms ", "pubkeyacceptedalgorithms ", "casignaturealgorithms ",
		"refuseconnection not today", "proxyjump a\nproxycommand b", "connectionattempts many",
	} {
		_, err := newConfig(Options{Destination: "h"}, parseSettings([]byte(base+text)), nil)
		var bad *ConfigError
		require.ErrorAs(t, err, &bad, text)
		require.NotEmpty(t, bad.Hint())
	}
}

func TestIgnoredSettingsAreNamed(t *testing.T) {
	c, err := Resolve(t.Context(), Options{Destination: "h", ConfigFile: "none", Options: []string{"Compression=yes", "ControlMaster=auto", "ForwardX11=yes", "Tunnel=no"}})
	require.NoError(t, err)
	require.Equal(t, []string{"compression yes", "controlmaster auto", "forwardx11 yes"}, c.Ignored)
	c, err = Resolve(t.Context(), Options{Destination: "h", ConfigFile: "none"})
	require.NoError(t, err)
	require.Empty(t, c.Ignored)
}

func TestSplitArguments(t *testing.T) {
	for s, want := range map[string][]string{
		"":                   nil,
		"  ":                 nil,
		"a b\tc":             {"a", "b", "c"},
		`a "b c" 'd "e'`:     {"a", "b c", `d "e`},
		`a\ b \"x\" \n "\'"`: {"a b", `"x"`, `\n`, "'"},
		`"" x`:               {"", "x"},
		`a"b"c`:              {"abc"},
		`'it\'s'`:            {"it's"},
	} {
		got, err := splitArguments(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	_, err := splitArguments(`a "b`)
	require.Error(t, err)
}
