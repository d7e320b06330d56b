package agentside

import (
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/gpghome"
)

func TestKeygrips(t *testing.T) {
	home := gpghome.ForTest(t)
	keyring := Keyring{Env: home.Env()}
	none, err := keyring.Keygrips(t.Context())
	require.NoError(t, err)
	require.Empty(t, none)
	key, err := home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>"})
	require.NoError(t, err)
	grips, err := keyring.Keygrips(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{key.Keygrip, key.SubKeygrip}, grips)
}

func TestParseKeygrips(t *testing.T) {
	const a, b, c = "0123456789ABCDEF0123456789ABCDEF01234567", "1123456789ABCDEF0123456789ABCDEF01234567", "2123456789ABCDEF0123456789ABCDEF01234567"
	for listing, want := range map[string][]string{
		"":                                 nil,
		"grp:::::::::" + a + ":\n":         {a},
		"grp:::::::::" + a + ":\r\n":       {a},
		"fpr:::::::::" + a + ":\n":         nil,
		"grp::::::::\ngrp:::::::::x:\n":    nil,
		"grp:::::::::" + a + "," + b + ":": {a, b},
		"grp:::::::::" + a + ":\nssb:\ngrp:::::::::" + b + ":\ngrp:::::::::" + a + ":\ngrp:::::::::" + c + ":\n": {a, b, c},
	} {
		require.Equal(t, want, parseKeygrips(listing), "%q", listing)
	}
}
