package sshfwd

import (
	"context"
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
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// resolved is the configuration for a server, changed by -o options.
func resolved(t *testing.T, srv *sshd.Server, options ...string) *config.Config {
	t.Helper()
	c, err := config.Resolve(t.Context(), config.To("host", append([]string{"-F", srv.ConfigFile}, config.OptionFlags(options)...)...))
	require.NoError(t, err)
	return c
}

// dialOptions are the options of a test, changed by set.
func dialOptions(p usertext.Asker, set []func(*DialOptions)) DialOptions {
	options := DialOptions{Prompter: p, Log: env.QuietLog()}
	for _, f := range set {
		f(&options)
	}
	return options
}

func withStateDir(dir string) func(*DialOptions) { return func(o *DialOptions) { o.StateDir = dir } }

// requireLogin dials and checks that a command runs.
func requireLogin(t *testing.T, c *config.Config, p usertext.Asker, set ...func(*DialOptions)) {
	t.Helper()
	client, err := Dial(dialContext(t), c, dialOptions(p, set))
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
}](t *testing.T, c *config.Config, p usertext.Asker, set ...func(*DialOptions)) E {
	t.Helper()
	client, err := Dial(dialContext(t), c, dialOptions(p, set))
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
	requireLogin(t, resolved(t, sshd.Start(t, sshd.Config{})), nil)
}

func TestDialUnknownHostAsks(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	for _, hash := range []string{"no", "yes"} {
		t.Run("HashKnownHosts "+hash, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ssh", "known_hosts")
			c := resolved(t, srv, "StrictHostKeyChecking=ask", "BatchMode=no", "UserKnownHostsFile="+file, "HashKnownHosts="+hash)
			p := &asker.Script{Answers: []string{"perhaps", "yes"}}
			requireLogin(t, c, p)
			require.Contains(t, p.AllAsked(), "The authenticity of host '["+srv.Host+"]:"+strconv.Itoa(srv.Port))
			require.Contains(t, p.AllAsked(), "ED25519 key fingerprint is SHA256:")
			require.Contains(t, p.AllAsked(), "Please type 'yes', 'no' or the fingerprint: ")
			require.Contains(t, p.AllNotices(), "Permanently added")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, hash == "yes", strings.HasPrefix(string(text), "|1|"))
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

			// It is known now, to us and to ssh, and nothing is asked or added.
			requireLogin(t, c, &asker.Script{})
			out, err := srv.SSH("-o", "UserKnownHostsFile="+file, "host", "echo", "ok").CombinedOutput()
			require.NoError(t, err, string(out))
			again, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		})
	}
}

func TestDialUnknownHostByFingerprint(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	key := sshkeys.Parse(t, srv.HostPublicKey)
	c := resolved(t, srv, "StrictHostKeyChecking=ask", "BatchMode=no", "UserKnownHostsFile="+file)
	requireLogin(t, c, &asker.Script{Answers: []string{"SHA256:wrong", hostkey.Fingerprint(key)}})
}

func TestDialUnknownHostRefused(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	for _, c := range []struct {
		name     string
		options  []string
		prompter *asker.Script
	}{
		{"no", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &asker.Script{Answers: []string{"no"}}},
		{"empty answer", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &asker.Script{Answers: []string{""}}},
		{"no answer", []string{"StrictHostKeyChecking=ask", "BatchMode=no"}, &asker.Script{}},
		{"BatchMode", []string{"StrictHostKeyChecking=ask"}, &asker.Script{Answers: []string{"yes"}}},
		{"strict", []string{"StrictHostKeyChecking=yes", "BatchMode=no"}, &asker.Script{Answers: []string{"yes"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resolved := resolved(t, srv, append(c.options, "UserKnownHostsFile="+file)...)
			err := requireNoLogin[*hostkey.Error](t, resolved, c.prompter)
			require.Equal(t, hostkey.Unknown, err.Reason)
			require.NoFileExists(t, file)
		})
	}
}

func TestDialAcceptsNewWithoutAsking(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	for _, strict := range []string{"accept-new", "no"} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		requireLogin(t, resolved(t, srv, "StrictHostKeyChecking="+strict, "UserKnownHostsFile="+file), nil)
		require.FileExists(t, file)
	}
}

// A changed key is refused whatever StrictHostKeyChecking says.
func TestDialChangedKey(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	line := "# a comment\n" + knownhosts.Line([]string{net.JoinHostPort(srv.Host, strconv.Itoa(srv.Port))}, sshkeys.New(t)) + "\n"
	require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
	for _, strict := range []string{"yes", "ask", "accept-new", "no"} {
		c := resolved(t, srv, "StrictHostKeyChecking="+strict, "BatchMode=no", "UserKnownHostsFile="+file)
		err := requireNoLogin[*hostkey.Error](t, c, &asker.Script{Answers: []string{"yes"}})
		require.Equal(t, hostkey.Changed, err.Reason)
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
			resolved, err := config.Resolve(t.Context(), config.To(c.host, "-p", strconv.Itoa(c.port), "-F", "none"))
			require.NoError(t, err)
			require.Contains(t, requireNoLogin[*DialError](t, resolved, nil).Error(), c.want)
		})
	}
	t.Run("black hole", func(t *testing.T) {
		port := silent.Addr().(*net.TCPAddr).Port
		resolved, err := config.Resolve(t.Context(), config.To("127.0.0.1", "-p", strconv.Itoa(port), "-F", "none", "-o", "ConnectTimeout=1"))
		require.NoError(t, err)
		require.ErrorIs(t, requireNoLogin[*HandshakeError](t, resolved, nil), ErrNoAnswer)
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
	resolved, err := config.Resolve(t.Context(), config.To("127.0.0.1", "-p", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), "-F", "none"))
	require.NoError(t, err)
	require.NotContains(t, requireNoLogin[*HandshakeError](t, resolved, nil).Error(), "\x1b")
}

// Cancelling ends Dial at any point: before the server answers, and while the user is
// asked.
func TestDialIsCancelled(t *testing.T) {
	t.Run("handshake", func(t *testing.T) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		t.Cleanup(func() { _ = silent.Close() })
		resolved, err := config.Resolve(t.Context(), config.To("127.0.0.1", "-p", strconv.Itoa(silent.Addr().(*net.TCPAddr).Port), "-F", "none"))
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
		_, err = Dial(ctx, resolved, DialOptions{Log: env.QuietLog()})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, (<-accepted).Close())
	})
	t.Run("prompts", func(t *testing.T) {
		srv := sshd.Start(t, sshd.Config{Options: []string{"PasswordAuthentication yes"}})
		for _, options := range [][]string{
			{"BatchMode=no", "StrictHostKeyChecking=ask", "UserKnownHostsFile=/nonexistent"},
			{"BatchMode=no", "PreferredAuthentications=password"},
		} {
			ctx, cancel := context.WithCancel(dialContext(t))
			p := &asker.Script{Started: make(chan struct{})}
			go func() {
				<-p.Started
				cancel()
			}()
			_, err := Dial(ctx, resolved(t, srv, options...), DialOptions{Prompter: p, Log: env.QuietLog()})
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

// Time that the user takes does not count against ConnectTimeout.
func TestDialClockStandsStillWhileAsking(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	file := filepath.Join(t.TempDir(), "known_hosts")
	c := resolved(t, srv, "BatchMode=no", "StrictHostKeyChecking=ask", "UserKnownHostsFile="+file, "ConnectTimeout=1")
	requireLogin(t, c, &slowly{asker.Script{Answers: []string{"yes"}}})
}

type slowly struct{ asker.Script }

func (s *slowly) Ask(ctx context.Context, text string) (string, error) {
	<-time.After(1500 * time.Millisecond)
	return s.Script.Ask(ctx, text)
}

func TestDialRefusesWhatItCannotDo(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	err := requireNoLogin[*config.UnsupportedError](t, resolved(t, srv, "ProxyCommand=-"), nil)
	require.Equal(t, "ProxyCommand", err.Option)
	requireLogin(t, resolved(t, srv, "ProxyCommand=none"), nil)
}

func TestDialHonoursAlgorithms(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{Options: []string{"Ciphers aes256-ctr"}})
	requireLogin(t, resolved(t, srv, "Ciphers=aes256-ctr"), nil)
	requireNoLogin[*HandshakeError](t, resolved(t, srv, "Ciphers=aes128-ctr"), nil)
	// sntrup761 alone is nothing we have.
	requireNoLogin[*config.Error](t, resolved(t, srv, "KexAlgorithms=sntrup761x25519-sha512@openssh.com"), nil)
}

func TestDialAddressFamilyAndBind(t *testing.T) {
	srv := sshd.Start(t, sshd.Config{})
	requireLogin(t, resolved(t, srv, "AddressFamily=inet", "BindAddress=127.0.0.1"), nil)
	requireNoLogin[*DialError](t, resolved(t, srv, "AddressFamily=inet6"), nil)
	requireNoLogin[*DialError](t, resolved(t, srv, "BindAddress=192.0.2.1"), nil)
}

// dialContext bounds a connection that hangs.
func dialContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
