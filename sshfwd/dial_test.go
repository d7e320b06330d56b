package sshfwd

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
)

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// resolved is the configuration for a server, changed by -o options.
func resolved(t *testing.T, srv *sshdtest.Server, options ...string) *Config {
	t.Helper()
	c, err := Resolve(t.Context(), Options{Destination: "host", ConfigFile: srv.ConfigFile, Options: options})
	require.NoError(t, err)
	return c
}

// requireLogin dials and sees that a command runs.
func requireLogin(t *testing.T, c *Config, p Prompter) {
	t.Helper()
	client, err := Dial(dialContext(t), c, p, quietLog())
	require.NoError(t, err)
	session, err := client.conn.NewSession()
	require.NoError(t, err)
	out, err := session.Output("echo in")
	require.NoError(t, err)
	require.Equal(t, "in\n", string(out))
	require.NoError(t, client.Close())
	require.NoError(t, client.Close())
	require.NoError(t, client.Wait())
}

func requireNoLogin[E interface {
	error
	Hint() string
}](t *testing.T, c *Config, p Prompter) E {
	t.Helper()
	client, err := Dial(dialContext(t), c, p, quietLog())
	if err == nil {
		_ = client.Close()
	}
	var want E
	require.ErrorAs(t, err, &want)
	require.NotEmpty(t, want.Hint())
	require.NotContains(t, want.Hint(), "\n")
	require.NotContains(t, want.Error(), "\n")
	return want
}

func TestDialLogsIn(t *testing.T) {
	requireLogin(t, resolved(t, sshdtest.Start(t, sshdtest.Config{})), nil)
}

func TestDialUnknownHostAsks(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	for _, hash := range []string{"no", "yes"} {
		t.Run("HashKnownHosts "+hash, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ssh", "known_hosts")
			c := resolved(t, srv, "StrictHostKeyChecking=ask", "BatchMode=no", "UserKnownHostsFile="+file, "HashKnownHosts="+hash)
			p := &script{answers: []string{"perhaps", "yes"}}
			requireLogin(t, c, p)
			require.Contains(t, p.allAsked(), "The authenticity of host '["+srv.Host+"]:"+strconv.Itoa(srv.Port))
			require.Contains(t, p.allAsked(), "ED25519 key fingerprint is SHA256:")
			require.Contains(t, p.allAsked(), "Please type 'yes', 'no' or the fingerprint: ")
			require.Contains(t, p.allNotices(), "permanently added")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, hash == "yes", strings.HasPrefix(string(text), "|1|"))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

			// It is known now, to us and to ssh, and nothing is asked or added.
			requireLogin(t, c, &script{})
			out, err := srv.SSH("-o", "UserKnownHostsFile="+file, "host", "echo", "ok").CombinedOutput()
			require.NoError(t, err, string(out))
			again, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		})
	}
}

func TestDialUnknownHostByFingerprint(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	key, ok := parseKnownKey(srv.HostPublicKey)
	require.True(t, ok)
	c := resolved(t, srv, "StrictHostKeyChecking=ask", "BatchMode=no", "UserKnownHostsFile="+file)
	requireLogin(t, c, &script{answers: []string{"SHA256:wrong", fingerprint(key)}})
}

func TestDialUnknownHostRefused(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	for _, c := range []struct {
		name     string
		options  []string
		prompter *script
	}{
		{"no", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &script{answers: []string{"no"}}},
		{"empty answer", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &script{answers: []string{""}}},
		{"no answer", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &script{}},
		{"BatchMode", []string{"StrictHostKeyChecking=ask"}, &script{answers: []string{"yes"}}},
		{"strict", []string{"StrictHostKeyChecking=yes", "BatchMode=no"}, &script{answers: []string{"yes"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := resolved(t, srv, append(c.options, "UserKnownHostsFile="+file)...)
			err := requireNoLogin[*HostKeyError](t, config, c.prompter)
			require.Equal(t, KeyUnknown, err.Reason)
			require.NoFileExists(t, file)
		})
	}
}

func TestDialAcceptsNewWithoutAsking(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	for _, strict := range []string{"accept-new", "no"} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		requireLogin(t, resolved(t, srv, "StrictHostKeyChecking="+strict, "UserKnownHostsFile="+file), nil)
		require.FileExists(t, file)
	}
}

// A changed key is refused whatever StrictHostKeyChecking says.
func TestDialChangedKey(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	line := "# a comment\n" + string(knownHostEntry(hostName(srv.Host, srv.Port), newKey(t), false))
	require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
	for _, strict := range []string{"yes", "ask", "accept-new", "no"} {
		c := resolved(t, srv, "StrictHostKeyChecking="+strict, "BatchMode=no", "UserKnownHostsFile="+file)
		err := requireNoLogin[*HostKeyError](t, c, &script{answers: []string{"yes"}})
		require.Equal(t, KeyChanged, err.Reason)
		require.Equal(t, file, err.File)
		require.Equal(t, 2, err.Line)
		require.Contains(t, err.Error(), file+":2")
		require.Contains(t, err.Hint(), "ssh-keygen -f '"+file+"' -R '["+srv.Host+"]:"+strconv.Itoa(srv.Port)+"'")
	}
}

func TestDialErrors(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for _, c := range []struct {
		name string
		host string
		port int
		want string
	}{
		{"name", "no-such-host.invalid", 22, `cannot resolve the host name "no-such-host.invalid"`},
		{"refused", "127.0.0.1", closed.Addr().(*net.TCPAddr).Port, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := Resolve(t.Context(), Options{Destination: c.host, Port: c.port, ConfigFile: "none"})
			require.NoError(t, err)
			require.Contains(t, requireNoLogin[*DialError](t, config, nil).Error(), c.want)
		})
	}
	t.Run("black hole", func(t *testing.T) {
		port := silent.Addr().(*net.TCPAddr).Port
		config, err := Resolve(t.Context(), Options{
			Destination: "127.0.0.1", Port: port, ConfigFile: "none", Options: []string{"ConnectTimeout=1"},
		})
		require.NoError(t, err)
		require.ErrorIs(t, requireNoLogin[*HandshakeError](t, config, nil), ErrNoAnswer)
	})
}

func TestDialNotSSH(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad\x1b[31m Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	config, err := Resolve(t.Context(), Options{Destination: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, ConfigFile: "none"})
	require.NoError(t, err)
	require.NotContains(t, requireNoLogin[*HandshakeError](t, config, nil).Error(), "\x1b")
}

// Cancelling ends Dial at any point: before there is an answer, and while the
// user is asked.
func TestDialIsCancelled(t *testing.T) {
	t.Run("handshake", func(t *testing.T) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = silent.Close() })
		config, err := Resolve(t.Context(), Options{Destination: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port, ConfigFile: "none"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(dialContext(t))
		stop := context.AfterFunc(ctx, func() {})
		defer stop()
		accepted := make(chan net.Conn, 1)
		go func() {
			conn, err := silent.Accept()
			if err == nil {
				accepted <- conn
			}
			cancel()
		}()
		_, err = Dial(ctx, config, nil, quietLog())
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, (<-accepted).Close())
	})
	t.Run("prompts", func(t *testing.T) {
		srv := sshdtest.Start(t, sshdtest.Config{Options: []string{"PasswordAuthentication yes"}})
		for _, options := range [][]string{
			{"BatchMode=no", "StrictHostKeyChecking=ask", "UserKnownHostsFile=/nonexistent"},
			{"BatchMode=no", "PreferredAuthentications=password"},
		} {
			ctx, cancel := context.WithCancel(dialContext(t))
			p := &script{started: make(chan struct{})}
			go func() {
				<-p.started
				cancel()
			}()
			_, err := Dial(ctx, resolved(t, srv, options...), p, quietLog())
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// Time that the user takes does not count against ConnectTimeout.
func TestDialClockStandsStillWhileAsking(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	c := resolved(t, srv, "BatchMode=no", "StrictHostKeyChecking=ask", "UserKnownHostsFile="+file, "ConnectTimeout=1")
	requireLogin(t, c, &slowly{script{answers: []string{"yes"}}})
}

type slowly struct{ script }

func (s *slowly) Ask(ctx context.Context, text string) (string, error) {
	<-time.After(1500 * time.Millisecond)
	return s.script.Ask(ctx, text)
}

func TestDialRefusesWhatItCannotDo(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	err := requireNoLogin[*UnsupportedError](t, resolved(t, srv, "ProxyCommand=-"), nil)
	require.Equal(t, "ProxyCommand", err.Option)
	requireLogin(t, resolved(t, srv, "ProxyCommand=none"), nil)
}

func TestDialHonoursAlgorithms(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{Options: []string{"Ciphers aes256-ctr"}})
	requireLogin(t, resolved(t, srv, "Ciphers=aes256-ctr"), nil)
	requireNoLogin[*HandshakeError](t, resolved(t, srv, "Ciphers=aes128-ctr"), nil)
	// sntrup761 alone is nothing we have.
	requireNoLogin[*ConfigError](t, resolved(t, srv, "KexAlgorithms=sntrup761x25519-sha512@openssh.com"), nil)
}

func TestDialAddressFamilyAndBind(t *testing.T) {
	srv := sshdtest.Start(t, sshdtest.Config{})
	requireLogin(t, resolved(t, srv, "AddressFamily=inet", "BindAddress=127.0.0.1"), nil)
	requireNoLogin[*DialError](t, resolved(t, srv, "AddressFamily=inet6"), nil)
	requireNoLogin[*DialError](t, resolved(t, srv, "BindAddress=192.0.2.1"), nil)
}
