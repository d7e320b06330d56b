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
		_, err := newConfig(To("h"), parseSettings([]byte(base+text)), nil)
		var bad *Error
		require.ErrorAs(t, err, &bad, text)
		require.NotEmpty(t, bad.Hint())
	}
}

func TestIgnoredSettingsAreNamed(t *testing.T) {
	c, err := Resolve(t.Context(), To("h", "-F", "none", "-o", "Compression=yes", "-o", "ControlMaster=auto", "-o", "ForwardX11=yes", "-o", "Tunnel=no"))
	require.NoError(t, err)
	require.Equal(t, []string{"compression yes", "controlmaster auto", "forwardx11 yes"}, c.Ignored)
	c, err = Resolve(t.Context(), To("h", "-F", "none"))
	require.NoError(t, err)
	require.Empty(t, c.Ignored)
}
