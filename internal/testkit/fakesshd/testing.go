package fakesshd

import (
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// dialTimeout is how long a test waits for a handshake.
const dialTimeout = 20 * time.Second

// Start starts srv for a test, with a fresh key that it accepts, and closes it
// when the test ends. It returns that key.
func Start(t testing.TB, srv *Server) ssh.Signer {
	t.Helper()
	user, err := NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	srv.AuthorizedKeys = append(srv.AuthorizedKeys, user.PublicKey())
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	return user
}

// ClientConfig logs in to srv with the key that Start returned, and knows its
// host key.
func (s *Server) ClientConfig(user ssh.Signer) *ssh.ClientConfig {
	return &ssh.ClientConfig{
		User:            "tester",
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(user)},
		HostKeyCallback: ssh.FixedHostKey(s.HostKey.PublicKey()),
		Timeout:         dialTimeout,
	}
}
