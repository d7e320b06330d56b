package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefusedConfigurations(t *testing.T) {
	base := "hostname h\nuser u\nport 22\n"
	for _, text := range []string{
		"ciphers ", "macs ", "kexalgorithms ", "hostkeyalgorithms ", "pubkeyacceptedalgorithms ", "casignaturealgorithms ",
		"refuseconnection not today", "proxyjump a\nproxycommand b", "connectionattempts many",
	} {
		_, err := newConfig(Options{Destination: "h"}, parseSettings([]byte(base+text)), nil)
		var bad *Error
		require.ErrorAs(t, err, &bad, text)
		require.NotEmpty(t, bad.Hint())
	}
}

func TestIgnoredSettingsAreNamed(t *testing.T) {
	c, err := Resolve(t.Context(), Options{Destination: "h", ConfigFile: "none", Options: []string{"Compression=yes", "ControlMaster=auto", "ForwardX11=yes", "Tunnel=no"}})
	require.NoError(t, err)
	require.Equal(t, []string{"compression yes", "controlmaster auto", "forwardx11 yes"}, c.Ignored)
	c, err = Resolve(t.Context(), Options{Destination: "h", ConfigFile: "none"})
	require.NoError(t, err)
	require.Empty(t, c.Ignored)
}
