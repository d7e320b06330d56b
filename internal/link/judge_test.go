package link_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/link"
	"gpg-bridge/internal/link/mux"
	"gpg-bridge/sshfwd"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
	"gpg-bridge/sshfwd/login"
	"gpg-bridge/sshfwd/wire"
)

func TestHopeless(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		&hostkey.Error{}, &config.Error{}, &config.UnsupportedError{},
		wire.ErrHeldTooMuch, &link.LostError{Err: wire.ErrHeldTooMuch},
	} {
		require.True(t, link.Hopeless(fmt.Errorf("connect: %w", err)), "%T", err)
	}
	for _, err := range []error{
		nil, io.EOF, &link.LostError{Err: io.EOF}, &sshfwd.DialError{}, &sshfwd.HandshakeError{Err: io.EOF},
		&login.AuthError{}, &mux.RefusedError{},
	} {
		require.False(t, link.Hopeless(err), "%T", err)
	}
}

func TestNothingRan(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&sshfwd.RequestRefusedError{}, &sshfwd.SessionRefusedError{}, &mux.RefusedError{}} {
		require.True(t, link.NothingRan(fmt.Errorf("run: %w", err)), "%T", err)
	}
	for _, err := range []error{nil, io.EOF, &link.ExitError{}, link.ErrNoExitStatus, &link.LostError{}} {
		require.False(t, link.NothingRan(err), "%T", err)
	}
}
