package sshfwd

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// announcing is a server that announces two host keys, its own and other, times times, and
// answers the request for a proof by prove.
func announcing(t *testing.T, other ssh.Signer, times int, prove fakesshd.RequestHandler) *fakesshd.Server {
	t.Helper()
	own, err := fakesshd.NewSigner()
	require.NoError(t, err)
	payload := ssh.Marshal(struct{ Own, Other []byte }{own.PublicKey().Marshal(), other.PublicKey().Marshal()})
	return &fakesshd.Server{
		HostKey:         own,
		RequestHandlers: map[string]fakesshd.RequestHandler{"hostkeys-prove-00@openssh.com": prove},
		Faults: fakesshd.Faults{LoggedIn: func(conn *fakesshd.Conn) {
			for range times {
				if _, _, err := conn.SendRequest(hostKeysRequest, false, payload); err != nil {
					return
				}
			}
		}},
	}
}

// A server that proves nothing, or something else, has its other key not learned, and
// hinders nobody.
func TestHostKeysWithoutAProof(t *testing.T) {
	other, err := fakesshd.NewSigner()
	require.NoError(t, err)
	signed := func(data func(conn *fakesshd.Conn, req *ssh.Request) []byte) fakesshd.RequestHandler {
		return func(conn *fakesshd.Conn, req *ssh.Request) (bool, []byte) {
			signature, err := other.Sign(rand.Reader, data(conn, req))
			return err == nil, ssh.Marshal(struct{ Signature []byte }{ssh.Marshal(signature)})
		}
	}
	proof := func(conn *fakesshd.Conn, req *ssh.Request) []byte {
		return append(ssh.Marshal(struct {
			Name    string
			Session []byte
		}{req.Type, conn.SessionID()}), req.Payload...)
	}
	for name, c := range map[string]struct {
		prove  fakesshd.RequestHandler
		times  int
		says   string
		learnt bool
	}{
		"a proof":         {signed(proof), 1, "updated", true},
		"many times":      {signed(proof), 500, "updated", true},
		"refused":         {func(*fakesshd.Conn, *ssh.Request) (bool, []byte) { return false, nil }, 1, "stay as they are", false},
		"of nothing":      {func(*fakesshd.Conn, *ssh.Request) (bool, []byte) { return true, nil }, 1, "stay as they are", false},
		"of another word": {signed(func(*fakesshd.Conn, *ssh.Request) []byte { return []byte("x") }), 1, "stay as they are", false},
		"never answered": {func(conn *fakesshd.Conn, _ *ssh.Request) (bool, []byte) {
			<-conn.Context().Done()
			return false, nil
		}, 1, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := announcing(t, other, c.times, c.prove)
			key, user := sshkeys.NewFile(t)
			srv.AuthorizedKeys = append(srv.AuthorizedKeys, user.PublicKey())
			fakesshd.Start(t, srv)
			file := sshkeys.WriteConfig(t, key, srv.Addr(), srv.HostKey.PublicKey())
			resolved, err := config.Resolve(t.Context(), config.To("host", "-F", file, "-o", "UpdateHostKeys=yes"))
			require.NoError(t, err)
			said := &lockedBuffer{}
			client, err := Dial(dialContext(t), resolved, DialOptions{Log: slog.New(slog.NewTextHandler(said, nil))})
			require.NoError(t, err)
			// The proof waits for what is more urgent, so that this is answered whatever
			// becomes of the proof.
			_, err = client.ForwardUnix(testContext(t), filepath.Join(env.ShortDir(t), "S"), func(context.Context, *Conn) {})
			require.NoError(t, err)
			require.Eventually(t, func() bool { return strings.Contains(said.String(), c.says) }, 20*time.Second, 5*time.Millisecond)
			status, err := client.Session(t.Context(), SessionRequest{Command: "exit 3"})
			require.NoError(t, err)
			require.Equal(t, 3, status)
			require.NoError(t, client.Close()) // and its goroutines have ended
			known, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
			require.NoError(t, err)
			require.Equal(t, c.learnt, strings.Contains(string(known), sshkeys.Authorized(other.PublicKey())), "%s", said)
		})
	}
}
