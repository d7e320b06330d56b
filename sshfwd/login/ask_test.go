package login

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// A server that answers a password neither by success nor by failure wants it changed.
func TestAuthPasswordExpired(t *testing.T) {
	l := New(t.Context(), Options{
		Config: &config.Config{NumberOfPasswordPrompts: 3, PasswordAuthentication: true}, Asker: &asker.Script{}, Log: env.QuietLog(),
	})
	l.password.current = &passwordAttempt{sent: true}
	require.Nil(t, l.nextPassword())
	err := l.Denied(l.aborted)
	require.ErrorIs(t, err, ErrPasswordExpired)
	require.Contains(t, err.(interface{ Hint() string }).Hint(), "ssh")
}
