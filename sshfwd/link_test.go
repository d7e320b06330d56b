package sshfwd

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
)

// linkPatience is how long a test waits for something that must happen.
const linkPatience = 20 * time.Second

// testContext bounds a test whose subject hangs.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), linkPatience)
	t.Cleanup(cancel)
	return ctx
}

// requireClosed fails the test if done is not closed in time.
func requireClosed(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(linkPatience):
		require.FailNow(t, "did not happen: "+what)
	}
}

// embedded logs in to srv, which it starts.
func embedded(t *testing.T, srv *fakesshd.Server) *Client {
	t.Helper()
	client, _ := embeddedLink(t, srv)
	return client
}

// embeddedLink is embedded with the connection under the client at hand.
func embeddedLink(t *testing.T, srv *fakesshd.Server) (*Client, *deadlyConn) {
	t.Helper()
	if srv.Env == nil {
		srv.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	}
	user := fakesshd.Start(t, srv)
	return linkTo(t, srv.Addr(), srv.ClientConfig(user))
}

// realLink logs in to a real sshd with these lines of sshd_config.
func realLink(t *testing.T, options ...string) *Client {
	t.Helper()
	return loginTo(t, sshd.Start(t, sshd.Config{Options: options}))
}

func loginTo(t *testing.T, srv *sshd.Server) *Client {
	t.Helper()
	pem, err := os.ReadFile(srv.ClientKeyFile)
	require.NoError(t, err)
	user, err := ssh.ParsePrivateKey(pem)
	require.NoError(t, err)
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey([]byte(srv.HostPublicKey))
	require.NoError(t, err)
	client, _ := linkTo(t, srv.Addr, &ssh.ClientConfig{
		User:              srv.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(user)},
		HostKeyCallback:   ssh.FixedHostKey(hostKey),
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	return client
}

func linkTo(t *testing.T, addr string, config *ssh.ClientConfig) (*Client, *deadlyConn) {
	t.Helper()
	raw, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	link := &deadlyConn{Conn: raw, dead: make(chan struct{}), closed: make(chan struct{})}
	conn, chans, reqs, err := ssh.NewClientConn(link, addr, config)
	require.NoError(t, err)
	client := newClient(ssh.NewClient(conn, chans, reqs), slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		_ = client.Close()
		_ = client.Wait()
	})
	return client, link
}

// onBoth runs a test against the embedded server and against a real sshd.
func onBoth(t *testing.T, test func(t *testing.T, client *Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t, &fakesshd.Server{})) })
	t.Run("sshd", func(t *testing.T) { test(t, realLink(t, "AcceptEnv GB_*")) })
}

// A deadlyConn is a link that can go dead as a network does: nothing fails,
// nothing passes.
type deadlyConn struct {
	net.Conn
	once, closeOnce sync.Once
	dead, closed    chan struct{}
}

func (c *deadlyConn) die() { c.once.Do(func() { close(c.dead) }) }

func (c *deadlyConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *deadlyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.dead:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *deadlyConn) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return c.Conn.Write(p)
	}
}

// serveEcho serves a connection until its peer half-closes.
func serveEcho(_ context.Context, conn *Conn) {
	_, _ = io.Copy(conn, conn)
	_ = conn.CloseWrite()
}

// newForwarder returns client's forwarder; maxConns 0 is DefaultMaxConns.
func newForwarder(t *testing.T, client *Client, maxConns int) *forwarder {
	t.Helper()
	forwarder, err := client.newForwarder(cmp.Or(maxConns, DefaultMaxConns))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		forwarder.Wait()
	})
	return forwarder
}
