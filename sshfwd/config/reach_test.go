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

// What asks for something that only ssh does is named, and nothing else.
func TestLacks(t *testing.T) {
	t.Setenv("DISPLAY", ":9")
	for _, test := range []struct {
		flags []string
		want  []Lack
	}{
		{nil, nil},
		{[]string{"-oTunnel=no", "-x", "-oCompression=no", "-oPKCS11Provider=none", "-oGSSAPIAuthentication=no"}, nil},
		{[]string{"-C"}, []Lack{{"Compression", "yes", false, false}}},
		{[]string{"-f", "-N"}, []Lack{{Fork, "yes", true, true}}},
		{[]string{"-X"}, []Lack{{"ForwardX11", "yes", true, true}}},
		{[]string{"-Y"}, []Lack{{"ForwardX11", "yes", true, true}}},
		{[]string{"-w", "any"}, []Lack{{"Tunnel", "point-to-point", true, true}}},
		{[]string{"-I", "/p.so"}, []Lack{{"PKCS11Provider", "/p.so", true, false}}},
		{[]string{"-oRekeyLimit=1G"}, []Lack{{"RekeyLimit", "1073741824 0", false, false}}},
		{[]string{"-oVerifyHostKeyDNS=ask"}, []Lack{{"VerifyHostKeyDNS", "ask", false, false}}},
		{[]string{"-K"}, []Lack{{GSSAPI, "yes", false, false}}},
		{[]string{"-K", "-oPreferredAuthentications=gssapi-with-mic,hostbased"}, []Lack{{GSSAPI, "yes", true, false}}},
		{[]string{"-K", "-oPreferredAuthentications=gssapi-with-mic,publickey"}, []Lack{{GSSAPI, "yes", false, false}}},
		{[]string{"-oHostbasedAuthentication=yes"}, []Lack{{"HostbasedAuthentication", "yes", false, false}}},
		{[]string{"-oHostbasedAuthentication=yes", "-oPreferredAuthentications=hostbased"}, []Lack{{"HostbasedAuthentication", "yes", true, false}}},
		{[]string{"-oProxyCommand=-"}, []Lack{{"ProxyCommand", "-", true, false}}},
	} {
		c, err := Resolve(t.Context(), To("h", append([]string{"-F", "none"}, test.flags...)...))
		require.NoError(t, err)
		require.Equal(t, test.want, c.Lacks, "%q", test.flags)
	}
	t.Setenv("DISPLAY", "")
	c, err := Resolve(t.Context(), To("h", "-F", "none", "-X"))
	require.NoError(t, err)
	require.Empty(t, c.Lacks, "ssh forwards no X11 without a display")
}
