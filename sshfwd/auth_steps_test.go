package sshfwd

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/internal/usertext"
	"gpg-bridge/sshfwd/login"
)

// accountWithPassword is a throw-away account that has one.
func accountWithPassword(t *testing.T, password string) *sshd.Account {
	t.Helper()
	account := sshd.NewAccount(t, sshd.AccountConfig{})
	cmd := exec.Command(env.Tool(t, "chpasswd"))
	cmd.Stdin = strings.NewReader(account.Name + ":" + password + "\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return account
}

// A key, and then a second factor: PAM's by keyboard-interactive, or a password.
func TestAuthTwoFactors(t *testing.T) {
	t.Parallel() // PAM takes its time to refuse
	account := accountWithPassword(t, "sesame")
	prompts := map[string]string{
		"keyboard-interactive": "(" + account.Name + "@127.0.0.1) Password: ",
		"password":             account.Name + "@127.0.0.1's password: ",
	}
	for method, prompt := range prompts {
		t.Run(method, func(t *testing.T) {
			if _, err := os.Stat("/etc/pam.d/sshd"); err != nil && method == "keyboard-interactive" {
				env.Missing(t, "no PAM configuration for sshd")
			}
			srv := sshd.Start(t, sshd.Config{Account: account, Options: []string{
				"UsePAM yes", "KbdInteractiveAuthentication yes", "PasswordAuthentication yes",
				"AuthenticationMethods publickey," + method,
			}})
			c := resolved(t, srv, "BatchMode=no", "PreferredAuthentications=publickey,keyboard-interactive,password")
			p := &asker.Script{Answers: []string{"wrong", "sesame"}}
			requireLogin(t, c, p)
			require.Equal(t, prompt+"|"+prompt, p.AllAsked())
			require.Contains(t, srv.Log(), "Partial publickey")

			p = &asker.Script{Answers: []string{"1", "sesame"}}
			c.NumberOfPasswordPrompts = 1
			require.Equal(t, []string{method}, requireNoLogin[*login.AuthError](t, c, p).Methods)
			require.Equal(t, prompt, p.AllAsked())

			c.BatchMode = true
			require.ErrorIs(t, requireNoLogin[*login.AuthError](t, c, &asker.Script{Answers: []string{"sesame"}}), usertext.ErrNoPrompt)
		})
	}
}

// sshd lets a client try MaxAuthTries keys, 6 by default. The one that
// IdentityFile names comes first of the agent's nine.
func TestAuthNineAgentKeys(t *testing.T) {
	dir := t.TempDir()
	var keys []string
	for i := range 9 {
		keys = append(keys, sshkeys.Keygen(t, dir, fmt.Sprint("key", i), "-t", "ed25519"))
	}
	last := keys[8]
	srv := serverFor(t, last+".pub")
	socket := startAgent(t, keys...)
	for _, only := range []string{"no", "yes"} {
		c := authConfig(t, srv, []string{last}, "IdentityAgent="+socket, "IdentitiesOnly="+only)
		offered, _ := offeredTo(t, srv, func() bool { requireLogin(t, c, nil); return true })
		require.Len(t, offered, 1)
	}
	c := authConfig(t, srv, nil, "IdentityAgent="+socket, "IdentitiesOnly=no")
	err := requireNoLogin[*login.AuthError](t, c, nil)
	require.Contains(t, err.Error(), "Too many authentication failures")
	require.Contains(t, err.Hint(), "IdentitiesOnly")
}

// Several rounds of questions, one of them empty, and an end after them.
func TestAuthKeyboardRounds(t *testing.T) {
	c := loginServer(t, &ssh.ServerConfig{
		KeyboardInteractiveCallback: func(_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for _, round := range []string{"Password: ", "", "Code: ", "Again: "} {
				var questions []string
				if round != "" {
					questions = []string{round}
				}
				answers, err := ask("", "", questions, make([]bool, len(questions)))
				if err != nil || round != "" && answers[0] != strings.TrimSuffix(round, ": ") {
					return nil, errWrong
				}
			}
			return nil, nil
		},
	})
	c.HostKeyAlias = "alias"
	p := &asker.Script{Answers: []string{"Password", "Code", "Again"}}
	requireConnects(t, c, p)
	require.Equal(t, "(me@alias) Password: |(me@alias) Code: |(me@alias) Again: ", p.AllAsked())
}

func TestAuthServerGoneAfterPassword(t *testing.T) {
	var mu sync.Mutex
	var last net.Conn
	c := loginServer(t, &ssh.ServerConfig{
		PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) {
			mu.Lock()
			defer mu.Unlock()
			_ = last.Close()
			return nil, errWrong
		},
	}, func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		last = conn
	})
	p := &asker.Script{Answers: []string{"1", "2", "3"}}
	require.ErrorIs(t, requireNoLogin[*HandshakeError](t, c, p), io.EOF)
	require.Equal(t, "me@127.0.0.1's password: ", p.AllAsked(), "nothing is asked for a connection that is gone")
}

// skAgent is an agent with a security key's public half and a plain key.
type skAgent struct {
	agent.ExtendedAgent
	keys []*agent.Key
}

func (a *skAgent) List() ([]*agent.Key, error) { return a.keys, nil }

// Only the agent can use a security key; IdentityFile decides about its turn, and its file
// alone is of no use.
func TestAuthSecurityKeyOrder(t *testing.T) {
	dir := env.ShortDir(t)
	plain, err := fakesshd.NewSigner()
	require.NoError(t, err)
	sk := ssh.Marshal(struct {
		Type, Key, Application string
	}{ssh.KeyAlgoSKED25519, strings.Repeat("k", 32), "ssh:"})
	public, err := ssh.ParsePublicKey(sk)
	require.NoError(t, err)
	file := filepath.Join(dir, "id_ed25519_sk")
	require.NoError(t, os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(public), 0o644))
	socket := filepath.Join(dir, "agent")
	serveAgent(t, socket, &skAgent{
		ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent),
		keys:          []*agent.Key{{Blob: plain.PublicKey().Marshal(), Comment: "plain"}, {Blob: sk, Comment: "token"}},
	})
	for _, c := range []struct {
		files []string
		agent string
		only  bool
		tried []string
	}{
		{nil, socket, false, []string{"key plain", "key token"}},
		{[]string{file}, socket, false, []string{"key " + file, "key plain"}},
		{[]string{file}, socket, true, []string{"key " + file}},
		{[]string{file}, "none", true, nil},
	} {
		config := authConfig(t, serverFor(t), c.files)
		config.IdentityAgent, config.IdentitiesOnly = c.agent, c.only
		require.Equal(t, c.tried, requireNoLogin[*login.AuthError](t, config, nil).Tried)
	}
}

func serveAgent(t *testing.T, socket string, a agent.Agent) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				_ = agent.ServeAgent(a, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
}
