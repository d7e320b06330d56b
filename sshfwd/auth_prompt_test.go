package sshfwd

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
	"gpg-bridge/sshfwd/login"
)

// loginServer accepts connections and does their log-in with config, and nothing else.
// accepted is called with each connection first.
func loginServer(t *testing.T, server *ssh.ServerConfig, accepted ...func(net.Conn)) *config.Config {
	t.Helper()
	hostKey, err := fakesshd.NewSigner()
	require.NoError(t, err)
	server.AddHostKey(hostKey)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			for _, see := range accepted {
				see(raw)
			}
			wg.Go(func() { serveLogin(raw, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	c, err := config.Resolve(t.Context(), config.To("me@127.0.0.1", "-p", strconv.Itoa(l.Addr().(*net.TCPAddr).Port), "-F", "none",
		"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile="+filepath.Join(t.TempDir(), "kh"), "-o", "IdentityAgent=none"))
	require.NoError(t, err)
	c.IdentityFiles = nil
	return c
}

func serveLogin(raw net.Conn, resolved *ssh.ServerConfig) {
	defer func() { _ = raw.Close() }()
	conn, channels, requests, err := ssh.NewServerConn(raw, resolved)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		_ = ch.Reject(ssh.Prohibited, "")
	}
	_ = conn.Wait()
}

func requireConnects(t *testing.T, c *config.Config, p usertext.Asker) {
	t.Helper()
	client, err := Dial(dialContext(t), c, DialOptions{Prompter: p, Log: env.QuietLog()})
	require.NoError(t, err)
	require.NoError(t, client.Close())
}

var errWrong = errors.New("wrong")

// onlyPassword accepts the password sesame, and nothing else.
func onlyPassword(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
	if string(password) != "sesame" {
		return nil, errWrong
	}
	return nil, nil
}

func TestAuthPassword(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{PasswordCallback: onlyPassword})
	p := &asker.Script{Answers: []string{"wrong", "sesame"}}
	requireConnects(t, c, p)
	require.Equal(t, "me@127.0.0.1's password: |me@127.0.0.1's password: ", p.AllAsked())
	require.Contains(t, p.AllNotices(), "Permission denied, please try again.")

	p = &asker.Script{Answers: []string{"1", "2", "3", "sesame"}}
	require.Equal(t, []string{"password"}, requireNoLogin[*login.AuthError](t, c, p).Tried)
	require.Equal(t, []string{"sesame"}, p.Answers)

	require.ErrorIs(t, requireNoLogin[*login.AuthError](t, c, &asker.Script{}), asker.ErrScriptOver)
	require.ErrorIs(t, requireNoLogin[*login.AuthError](t, c, nil), usertext.ErrNoPrompt)
	c.PasswordAuthentication = false
	requireNoLogin[*login.AuthError](t, c, &asker.Script{Answers: []string{"sesame"}})
}

func TestAuthPasswordOfSSHD(t *testing.T) {
	account := sshd.NewAccount(t, sshd.AccountConfig{})
	cmd := exec.Command("chpasswd")
	cmd.Stdin = strings.NewReader(account.Name + ":sesame\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	srv := sshd.Start(t, sshd.Config{Account: account, Options: []string{"PasswordAuthentication yes"}})
	c := resolved(t, srv, "BatchMode=no", "PreferredAuthentications=keyboard-interactive,password")
	requireLogin(t, c, &asker.Script{Answers: []string{"wrong", "sesame"}})
	require.Equal(t, []string{"publickey", "password"}, requireNoLogin[*login.AuthError](t, c, &asker.Script{Answers: []string{"1", "2", "3"}}).Methods)
}

func TestAuthKeyboardInteractive(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{
		BannerCallback: func(ssh.ConnMetadata) string { return "Hello \x1b]0;evil\x07\r\nworld" },
		KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			answers, err := ask("name", "do\x1b[2J this", []string{"Password: ", "Code: "}, []bool{false, true})
			if err != nil || strings.Join(answers, ",") != "sesame,123" {
				return nil, errWrong
			}
			_, err = ask("", "", nil, nil)
			return nil, err
		},
	})
	p := &asker.Script{Answers: []string{"wrong", "1", "sesame", "123"}}
	requireConnects(t, c, p)
	require.Equal(t, strings.Repeat("(me@127.0.0.1) Password: |(me@127.0.0.1) Code: |", 2), p.AllAsked()+"|")
	require.Contains(t, p.AllNotices(), `do\x1b[2J this`)
	require.Contains(t, p.AllNotices(), `Hello \x1b]0;evil\x07`+"\nworld")
	require.NotContains(t, p.AllNotices(), "\x1b")
	requireNoLogin[*login.AuthError](t, c, nil)
}

// The server accepts a key and then wants a code as well, or another key.
func TestAuthSeveralSteps(t *testing.T) {
	dir := t.TempDir()
	a, b := sshkeys.Keygen(t, dir, "a", "-t", "ed25519"), sshkeys.Keygen(t, dir, "b", "-t", "ed25519")
	onlyKey := func(file string, then error) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		want := sshkeys.Parse(t, sshkeys.PublicLine(t, file+".pub"))
		return func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !hostkey.Same(key, want) {
				return nil, errWrong
			}
			return nil, then
		}
	}
	t.Run("key, password", func(t *testing.T) {
		c := loginServer(t, &ssh.ServerConfig{
			PublicKeyCallback: onlyKey(b, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{PasswordCallback: onlyPassword}}),
		})
		c.IdentityFiles = []string{a, b}
		requireConnects(t, c, &asker.Script{Answers: []string{"sesame"}})
	})
	// The second one may have been refused at first, and the first one is not
	// offered again.
	t.Run("key, key", func(t *testing.T) {
		var offered atomic.Int32
		second := func(conn ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			offered.Add(1)
			return onlyKey(a, nil)(conn, key)
		}
		c := loginServer(t, &ssh.ServerConfig{
			PublicKeyCallback: onlyKey(b, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{PublicKeyCallback: second}}),
		})
		for _, files := range [][]string{{a, b}, {b, a}} {
			offered.Store(0)
			c.IdentityFiles = files
			requireConnects(t, c, nil)
			require.Equal(t, int32(1), offered.Load())
		}
	})
}

// ConnectTimeout is for the key exchange: a server may think longer about a
// password.
func TestAuthIsNotBoundByConnectTimeout(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{
		PasswordCallback: func(conn ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			<-time.After(1500 * time.Millisecond)
			return onlyPassword(conn, password)
		},
	})
	c.ConnectTimeout = time.Second
	requireConnects(t, c, &asker.Script{Answers: []string{"sesame"}})
}

// A server may not go on asking for ever.
func TestAuthKeyboardIsBounded(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{
		KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for {
				if _, err := ask("", "", nil, nil); err != nil {
					return nil, err
				}
			}
		},
	})
	requireNoLogin[*login.AuthError](t, c, &asker.Script{})
}

// A signature that fails does not keep the other keys from being tried.
func TestAuthKeyThatCannotSign(t *testing.T) {
	dir := t.TempDir()
	bad, good := sshkeys.Keygen(t, dir, "bad", "-t", "ed25519"), sshkeys.Keygen(t, dir, "good", "-t", "ed25519")
	srv := serverFor(t, bad+".pub", good+".pub")
	other, err := os.ReadFile(good)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bad, other, 0o600)) // its .pub says otherwise
	c := authConfig(t, srv, []string{sshkeys.Keygen(t, dir, "locked", "-t", "ed25519", "-N", "x"), bad, good})
	requireLogin(t, c, &asker.Script{Answers: []string{""}})
}
