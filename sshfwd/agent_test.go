package sshfwd

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/login"
)

// sshAdd runs ssh-add with an agent.
func sshAdd(t *testing.T, socket string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(env.Tool(t, "ssh-add"), args...)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// constrain adds a key to the agent for these servers only (ssh-add -h).
func constrain(t *testing.T, socket, key string, servers ...*sshd.Server) {
	t.Helper()
	var lines strings.Builder
	args := []string{"-q"}
	for i, srv := range servers {
		name := string(rune('a' + i))
		lines.WriteString(name + " " + srv.HostPublicKey + "\n")
		args = append(args, "-h", name)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(hosts, []byte(lines.String()), 0o600))
	out, err := sshAdd(t, socket, append(append(args, "-H", hosts), key)...)
	require.NoError(t, err, out)
}

// A key that is restricted to certain hosts works for these, and only because the agent is
// told which host it is.
func TestAuthDestinationConstrainedKey(t *testing.T) {
	dir := t.TempDir()
	key := sshkeys.Keygen(t, dir, "key", "-t", "ed25519")
	here, elsewhere := serverFor(t, key+".pub"), serverFor(t, key+".pub")
	for _, kex := range []string{"", "curve25519-sha256", "diffie-hellman-group14-sha256", "ecdh-sha2-nistp256", "diffie-hellman-group-exchange-sha256"} {
		t.Run(kex, func(t *testing.T) {
			socket := startAgent(t)
			constrain(t, socket, key, here)
			resolved := func(srv *sshd.Server) *config.Config {
				c := authConfig(t, srv, nil, "IdentitiesOnly=no", "IdentityAgent="+socket)
				if kex != "" {
					c.KexAlgorithms = []string{kex}
				}
				return c
			}
			requireLogin(t, resolved(here), nil)
			requireNoLogin[*login.AuthError](t, resolved(elsewhere), nil)
		})
	}
	t.Run("not told", func(t *testing.T) {
		socket := startAgent(t)
		constrain(t, socket, key, here)
		conn, err := net.Dial("unix", socket)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		unbound := agent.NewClient(conn)
		keys, err := unbound.List()
		require.NoError(t, err)
		require.Len(t, keys, 1)
		public, err := ssh.ParsePublicKey(keys[0].Blob)
		require.NoError(t, err)
		_, err = unbound.Sign(public, []byte("x"))
		require.Error(t, err)
	})
}

func agentOutput(t *testing.T, c *config.Config, forward bool, command string) string {
	t.Helper()
	client, err := Dial(dialContext(t), c, DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	if forward {
		require.NoError(t, client.ForwardAgent())
		require.Error(t, client.ForwardAgent())
	}
	var out bytes.Buffer
	_, err = client.Session(dialContext(t), SessionRequest{Command: command, Stdout: &out, Stderr: &out, ForwardAgent: forward})
	require.NoError(t, err)
	return out.String()
}

func TestForwardAgent(t *testing.T) {
	dir := t.TempDir()
	plain, bound := sshkeys.Keygen(t, dir, "plain", "-t", "ed25519"), sshkeys.Keygen(t, dir, "bound", "-t", "ed25519")
	srv := serverFor(t, plain+".pub")
	socket, other := startAgent(t, plain), startAgent(t)
	constrain(t, socket, bound, srv)
	resolved := func(options ...string) *config.Config {
		return authConfig(t, srv, []string{plain}, append(options, "IdentityAgent="+socket)...)
	}
	t.Run("not asked for", func(t *testing.T) {
		require.False(t, resolved().ForwardAgent)
		require.Equal(t, "none\n", agentOutput(t, resolved(), false, "echo ${SSH_AUTH_SOCK:-none}"))
	})
	t.Run("yes", func(t *testing.T) {
		listed := agentOutput(t, resolved("ForwardAgent=yes"), true, "ssh-add -l; ssh-add -l")
		require.Equal(t, 2, strings.Count(listed, "plain"), listed)
		// The agent knows that the host asks, not this machine: without the
		// session-bind it would show this key too.
		require.NotContains(t, listed, "bound")
	})
	t.Run("signs", func(t *testing.T) {
		require.Contains(t, agentOutput(t, resolved("ForwardAgent=yes"), true, "ssh-add -T "+plain+".pub && echo signed"), "signed")
	})
	t.Run("another agent", func(t *testing.T) {
		require.Contains(t, agentOutput(t, resolved("ForwardAgent="+other), true, "ssh-add -l"), "no identities")
		t.Setenv("GB_TEST_AGENT", other)
		require.Contains(t, agentOutput(t, resolved("ForwardAgent=$GB_TEST_AGENT"), true, "ssh-add -l"), "no identities")
	})
	t.Run("no agent", func(t *testing.T) {
		for _, option := range []string{"ForwardAgent=" + dir + "/nobody", "ForwardAgent=$GB_NO_SUCH_VARIABLE"} {
			client, err := Dial(dialContext(t), resolved(option), DialOptions{Log: env.QuietLog()})
			require.NoError(t, err)
			var none *ForwardAgentError
			require.ErrorAs(t, client.ForwardAgent(), &none)
			require.NotEmpty(t, none.Hint())
			require.NoError(t, client.Close())
		}
	})
}

// The host may have at most so many connections to the agent. They end with the SSH
// connection, whether the agent answers or not.
func TestForwardAgentIsBounded(t *testing.T) {
	socket := filepath.Join(env.ShortDir(t), "agent")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer func() { _ = l.Close() }()
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { // reads, and never answers
				_, _ = conn.Read(make([]byte, 1))
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.Close()
			})
		}
	})
	client, server := agentPair(t)
	client.agent = &agentForward{socket: socket, log: env.QuietLog()}
	require.NoError(t, client.ForwardAgent())
	for range maxAgentChannels {
		ch, reqs, err := server.OpenChannel(agentChannel, nil)
		require.NoError(t, err)
		go ssh.DiscardRequests(reqs)
		_, err = ch.Write([]byte{0})
		require.NoError(t, err)
	}
	_, _, err = server.OpenChannel(agentChannel, nil)
	var refused *ssh.OpenChannelError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ssh.ResourceShortage, refused.Reason)
	require.NoError(t, client.Close())
}

// agentPair is a Client and the server at the other end.
func agentPair(t *testing.T) (*Client, *ssh.ServerConn) {
	t.Helper()
	hostKey, err := fakesshd.NewSigner()
	require.NoError(t, err)
	resolved := &ssh.ServerConfig{NoClientAuth: true}
	resolved.AddHostKey(hostKey)
	left, right := newBufferedPipe()
	servers := make(chan *ssh.ServerConn, 1)
	go func() {
		server, channels, requests, err := ssh.NewServerConn(right, resolved)
		if err != nil {
			close(servers)
			return
		}
		go ssh.DiscardRequests(requests)
		go func() {
			for ch := range channels {
				_ = ch.Reject(ssh.Prohibited, "")
			}
		}()
		servers <- server
	}()
	conn, channels, requests, err := ssh.NewClientConn(left, "x", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(hostKey.PublicKey())})
	require.NoError(t, err)
	server := <-servers
	require.NotNil(t, server)
	return newClient(ssh.NewClient(conn, channels, requests), env.QuietLog()), server
}

func TestAddKeysToAgent(t *testing.T) {
	dir := t.TempDir()
	key := sshkeys.Keygen(t, dir, "key", "-t", "ed25519", "-N", "sesame", "-C", "my comment")
	pem := sshkeys.Keygen(t, dir, "pem", "-t", "ecdsa", "-m", "PEM")
	rsa := sshkeys.Keygen(t, dir, "rsa", "-t", "rsa", "-b", "2048")
	srv := serverFor(t, key+".pub", pem+".pub", rsa+".pub")
	passphrase, question := "Enter passphrase for key '"+key+"': ", "Add key "+key+" (my comment) to agent?"
	for _, c := range []struct {
		value, key string
		answers    []string
		asked      string
		added      bool
	}{
		{"no", key, []string{"sesame"}, passphrase, false},
		{"yes", key, []string{"sesame"}, passphrase, true},
		{"yes", pem, nil, "", true},
		{"yes", rsa, nil, "", true},
		{"1h", key, []string{"sesame"}, passphrase, true},
		{"confirm 1h", key, []string{"sesame"}, passphrase, true},
		{"ask", key, []string{"sesame", "yes"}, passphrase + "|" + question, true},
		{"ask", key, []string{"sesame", "no"}, passphrase + "|" + question, false},
	} {
		t.Run(c.value+" "+filepath.Base(c.key), func(t *testing.T) {
			socket := startAgent(t)
			resolved := authConfig(t, srv, []string{c.key}, "AddKeysToAgent="+c.value, "IdentityAgent="+socket)
			p := &asker.Script{Answers: c.answers}
			requireLogin(t, resolved, p)
			require.Equal(t, c.asked, p.AllAsked())
			listed, _ := sshAdd(t, socket, "-L")
			require.Equal(t, c.added, strings.Contains(listed, strings.Fields(sshkeys.PublicLine(t, c.key+".pub"))[1]), listed)
			if c.added && c.value != "confirm 1h" { // nobody confirms there
				requireLogin(t, resolved, nil)
			}
			if c.value == "confirm 1h" {
				_, err := sshAdd(t, socket, "-T", c.key+".pub")
				require.Error(t, err)
			}
		})
	}
	t.Run("for a second", func(t *testing.T) {
		socket := startAgent(t)
		requireLogin(t, authConfig(t, srv, []string{pem}, "AddKeysToAgent=1s", "IdentityAgent="+socket), nil)
		require.Eventually(t, func() bool {
			listed, _ := sshAdd(t, socket, "-l")
			return strings.Contains(listed, "no identities")
		}, 10*time.Second, 50*time.Millisecond)
	})
	t.Run("no agent", func(t *testing.T) {
		requireLogin(t, authConfig(t, srv, []string{pem}, "AddKeysToAgent=yes"), nil)
	})
}

// An agent that does not answer delays a key that was read from a file only for a while.
func TestAgentThatDoesNotAnswer(t *testing.T) {
	socket := filepath.Join(env.ShortDir(t), "agent")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	key := sshkeys.Keygen(t, t.TempDir(), "key", "-t", "ed25519")
	srv := serverFor(t, key+".pub")
	ctx, cancel := context.WithCancelCause(dialContext(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1))
		cancel(asker.ErrScriptOver)
		_ = conn.Close()
	})
	_, err = Dial(ctx, authConfig(t, srv, []string{key}, "IdentityAgent="+socket), DialOptions{Log: env.QuietLog()})
	require.ErrorIs(t, err, asker.ErrScriptOver)
	wg.Wait()
}
