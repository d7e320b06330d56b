package ports

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/fakesshd"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
)

// bounded ends a test whose subject hangs.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// toReal connects to a real sshd.
func toReal(t *testing.T) *sshfwd.Client {
	t.Helper()
	return connect(t, sshd.Start(t, sshd.Config{}).ConfigFile)
}

// toFake connects to a server that is played, which it starts.
func toFake(t *testing.T, srv *fakesshd.Server) *sshfwd.Client {
	t.Helper()
	file, signer := sshkeys.NewFile(t)
	srv.AuthorizedKeys = []ssh.PublicKey{signer.PublicKey()}
	fakesshd.Start(t, srv)
	return connect(t, sshkeys.WriteConfig(t, file, srv.Addr(), srv.HostKey.PublicKey()))
}

// connect connects to the `Host host` of an ssh_config.
func connect(t *testing.T, file string) *sshfwd.Client {
	t.Helper()
	host, err := config.Resolve(t.Context(), config.To("host", "-F", file).Batch())
	require.NoError(t, err)
	client, err := sshfwd.Dial(bounded(t), host, sshfwd.DialOptions{Log: env.QuietLog()})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = client.Close()
		_ = client.Wait()
	})
	return client
}
