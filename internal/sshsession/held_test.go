package sshsession

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/bridge"
	"gpg-bridge/internal/share"
	"gpg-bridge/remoteside/prepare"
	"gpg-bridge/sshfwd/config"
)

// If another connection had the path, the start is tried again whatever a later try fails of,
// and the status has that reason.
func TestStateOfWhatIsTriedAgain(t *testing.T) {
	b := &sessionBridge{run: &run{config: &config.Config{}}}
	b.noteHeld(nil, nil, &prepare.NoGPGError{})
	require.False(t, b.held, "it never was another's")
	other := errors.New("another")
	for _, c := range []struct {
		agent, err error
		want       share.State
	}{
		{nil, fmt.Errorf("x: %w", &prepare.HeldError{}), share.Taken},
		{other, &prepare.HeldError{}, share.Taken},
		{nil, &prepare.HungError{Program: "gpgconf"}, share.Silent},
		{other, &prepare.OwnAgentError{}, share.NoAgent},
		{nil, &prepare.NoGPGError{}, share.Waiting},
	} {
		b.noteHeld(nil, c.agent, c.err)
		require.True(t, b.held)
		require.Equal(t, c.want, b.hindrance, c.err)
	}
	b.noteHeld(&bridge.Bridge{}, nil, nil)
	require.False(t, b.held)
}
