package sshfwd

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/sshtest"
)

// loginServer accepts connections and logs them in as config says, no more.
// accepted sees each before.
func loginServer(t *testing.T, server *ssh.ServerConfig, accepted ...func(net.Conn)) *Config {
	t.Helper()
	hostKey, err := sshtest.NewSigner()
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
	c, err := Resolve(t.Context(), Options{
		Destination: "me@127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, ConfigFile: "none",
		Options: []string{"StrictHostKeyChecking=accept-new", "UserKnownHostsFile=" + filepath.Join(t.TempDir(), "kh"), "IdentityAgent=none"},
	})
	require.NoError(t, err)
	c.IdentityFiles = nil
	return c
}

func serveLogin(raw net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = raw.Close() }()
	conn, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for ch := range channels {
		_ = ch.Reject(ssh.Prohibited, "")
	}
	_ = conn.Wait()
}

func requireConnects(t *testing.T, c *Config, p Prompter) {
	t.Helper()
	client, err := Dial(dialContext(t), c, p, quietLog())
	require.NoError(t, err)
	require.NoError(t, client.Close())
}

var errWrong = errors.New("wrong")

// onlyPassword takes sesame for a password.
func onlyPassword(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
	if string(password) != "sesame" {
		return nil, errWrong
	}
	return nil, nil
}

func TestAuthPassword(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{PasswordCallback: onlyPassword})
	p := &script{answers: []string{"wrong", "sesame"}}
	requireConnects(t, c, p)
	require.Equal(t, "me@127.0.0.1's password: |me@127.0.0.1's password: ", p.allAsked())
	require.Contains(t, p.allNotices(), "Permission denied, please try again.")

	p = &script{answers: []string{"1", "2", "3", "sesame"}}
	require.Equal(t, []string{"password"}, requireNoLogin[*AuthError](t, c, p).Tried)
	require.Equal(t, []string{"sesame"}, p.answers)

	require.ErrorIs(t, requireNoLogin[*AuthError](t, c, &script{}), errScriptOver)
	require.ErrorIs(t, requireNoLogin[*AuthError](t, c, nil), ErrNoPrompt)
	c.PasswordAuthentication = false
	requireNoLogin[*AuthError](t, c, &script{answers: []string{"sesame"}})
}

func TestAuthPasswordOfSSHD(t *testing.T) {
	account := sshdtest.NewAccount(t, sshdtest.AccountConfig{})
	cmd := exec.Command("chpasswd")
	cmd.Stdin = strings.NewReader(account.Name + ":sesame\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	srv := sshdtest.Start(t, sshdtest.Config{Account: account, Options: []string{"PasswordAuthentication yes"}})
	c := resolved(t, srv, "BatchMode=no", "PreferredAuthentications=keyboard-interactive,password")
	requireLogin(t, c, &script{answers: []string{"wrong", "sesame"}})
	require.Equal(t, []string{"publickey", "password"}, requireNoLogin[*AuthError](t, c, &script{answers: []string{"1", "2", "3"}}).Methods)
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
	p := &script{answers: []string{"wrong", "1", "sesame", "123"}}
	requireConnects(t, c, p)
	require.Equal(t, strings.Repeat("(me@127.0.0.1) Password: |(me@127.0.0.1) Code: |", 2), p.allAsked()+"|")
	require.Contains(t, p.allNotices(), `do\x1b[2J this`)
	require.Contains(t, p.allNotices(), `Hello \x1b]0;evil\x07`+"\nworld")
	require.NotContains(t, p.allNotices(), "\x1b")
	requireNoLogin[*AuthError](t, c, nil)
}

// The server takes a key and then wants a code as well, or another key.
func TestAuthSeveralSteps(t *testing.T) {
	dir := t.TempDir()
	a, b := keygen(t, dir, "a", "-t", "ed25519"), keygen(t, dir, "b", "-t", "ed25519")
	onlyKey := func(file string, then error) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
		want, ok := parseKnownKey(publicLine(t, file+".pub"))
		require.True(t, ok)
		return func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !sameKey(key, want) {
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
		requireConnects(t, c, &script{answers: []string{"sesame"}})
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
	requireConnects(t, c, &script{answers: []string{"sesame"}})
}

// A server may not ask without end.
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
	requireNoLogin[*AuthError](t, c, &script{})
}

// A signature that fails does not end the chances of the other keys.
func TestAuthKeyThatCannotSign(t *testing.T) {
	dir := t.TempDir()
	bad, good := keygen(t, dir, "bad", "-t", "ed25519"), keygen(t, dir, "good", "-t", "ed25519")
	srv := serverFor(t, bad+".pub", good+".pub")
	other, err := os.ReadFile(good)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bad, other, 0o600)) // its .pub says otherwise
	c := authConfig(t, srv, []string{keygen(t, dir, "locked", "-t", "ed25519", "-N", "x"), bad, good})
	requireLogin(t, c, &script{answers: []string{""}})
}
