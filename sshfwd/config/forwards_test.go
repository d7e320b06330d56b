package config

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

func TestParseForward(t *testing.T) {
	tcp := func(host string, port int) Endpoint { return Endpoint{Host: host, Port: port} }
	path := func(p string) Endpoint { return Endpoint{Path: p} }
	for _, test := range []struct {
		keyword, value string
		want           ForwardSpec
	}{
		{"LocalForward", "8080:host:80", ForwardSpec{tcp("", 8080), tcp("host", 80)}},
		{"LocalForward", "8080 host:80", ForwardSpec{tcp("", 8080), tcp("host", 80)}},
		{"LocalForward", "127.0.0.1:8080:host:80", ForwardSpec{tcp("127.0.0.1", 8080), tcp("host", 80)}},
		{"LocalForward", "[::1]:8080 [fe80::1]:80", ForwardSpec{tcp("::1", 8080), tcp("fe80::1", 80)}},
		{"LocalForward", ":8080:host:80", ForwardSpec{tcp("*", 8080), tcp("host", 80)}},
		{"LocalForward", "*:8080:host:80", ForwardSpec{tcp("*", 8080), tcp("host", 80)}},
		{"LocalForward", "/a/b /c/d", ForwardSpec{path("/a/b"), path("/c/d")}},
		{"LocalForward", "/a/b:host:80", ForwardSpec{path("/a/b"), tcp("host", 80)}},
		{"LocalForward", "8080:/c/d", ForwardSpec{tcp("", 8080), path("/c/d")}},
		{"LocalForward", "localhost:8080:/c/d", ForwardSpec{tcp("localhost", 8080), path("/c/d")}},
		{"RemoteForward", "0:host:80", ForwardSpec{tcp("", 0), tcp("host", 80)}},
		{"RemoteForward", "1080", ForwardSpec{Listen: tcp("", 1080)}},
		{"RemoteForward", "1080 [socks]:0", ForwardSpec{Listen: tcp("", 1080)}},
		{"RemoteForward", "/run/a /run/b", ForwardSpec{path("/run/a"), path("/run/b")}},
		{"DynamicForward", "1080", ForwardSpec{Listen: tcp("", 1080)}},
		{"DynamicForward", "[::1]:1080", ForwardSpec{Listen: tcp("::1", 1080)}},
		{"DynamicForward", "/run/socks", ForwardSpec{Listen: path("/run/socks")}},
	} {
		spec, err := ParseForward(test.keyword, test.value)
		require.NoError(t, err, "%s %s", test.keyword, test.value)
		require.Equal(t, test.want, spec, "%s %s", test.keyword, test.value)
	}
	for keyword, values := range map[string][]string{
		"LocalForward":   {"", "foo", "8080", "8080:80", "0:h:1", "8080:h:0", "8080:h:65536", "a:b:c:d:e", "[::1:80:h:1", "1:2:3:4:5", "8080:h:http"},
		"RemoteForward":  {"", "h:1:", "8080:h:x", "[a]b:1:h:1"},
		"DynamicForward": {"", "0", "a:b:c", "1080 host:80"},
	} {
		for _, value := range values {
			_, err := ParseForward(keyword, value)
			var bad *Error
			require.ErrorAs(t, err, &bad, "%s %q", keyword, value)
		}
	}
}

// What ssh -G makes of the flags is what we make of them without ssh.
func TestForwardsAsSSHReadsThem(t *testing.T) {
	env.Tool(t, "ssh")
	var flags []string
	for flag, specs := range map[string][]string{
		"-L": {
			"8080:localhost:80", "/tmp/a:/tmp/b", "8081:/tmp/b", "*:82:[::1]:82", ":83:x:83", "/tmp/c:h:9",
			"127.0.0.1:84:h:1", "localhost:85:/tmp/d", "[::1]:86:h:1",
		},
		"-R": {"90:h:91", "99", "/tmp/r:/tmp/l", "0:h:3", "*:92:h:1", "/tmp/s:h:5", "addr:93"},
		"-D": {"1080", "[::1]:1081", ":1082", "*:1083"},
		"-o": {"GatewayPorts=yes", "StreamLocalBindMask=0117", "StreamLocalBindUnlink=yes"},
	} {
		for _, spec := range specs {
			flags = append(flags, flag, spec)
		}
	}
	options := To("h", append(flags, "-F", "none")...)
	asked, err := Resolve(t.Context(), options)
	require.NoError(t, err)
	alone, err := resolveWithoutSSH(options)
	require.NoError(t, err)
	require.Equal(t, asked.Forwards, alone.Forwards)
	require.Len(t, asked.Forwards.Local, 9)
	require.Len(t, asked.Forwards.Dynamic, 4)
	require.Equal(t, "-rw-rw----", (0o666 &^ asked.Forwards.StreamLocalBindMask).String())

	options = To("h", append(flags, "-F", "none", "-o", "ClearAllForwardings=yes")...)
	for _, resolve := range []func() (*Config, error){
		func() (*Config, error) { return Resolve(t.Context(), options) },
		func() (*Config, error) { return resolveWithoutSSH(options) },
	} {
		cleared, err := resolve()
		require.NoError(t, err)
		require.True(t, cleared.Forwards.IsEmpty())
	}
}

// Both refuse the same.
func TestForwardsThatSSHRefuses(t *testing.T) {
	program := env.Tool(t, "ssh")
	for _, value := range []string{"foo", "8080", "0:h:1", "8080:h:0", "a:b:c:d:e", "8080:h:99999", "8080:h:80:90"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		require.Error(t, exec.CommandContext(ctx, program, "-G", "-F", "none", "-L", value, "h").Run(), "%q", value)
		cancel()
		_, err := ParseForward("LocalForward", value)
		require.Error(t, err, "%q", value)
	}
}

func TestEnvironmentToSend(t *testing.T) {
	c := &Config{
		SendEnv: []string{"LANG", "LC_*", "X?", "GONE", "-GON*", "[a]"},
		SetEnv:  []string{"LC_ALL=C", "A=b c", "TERM=dumb"},
	}
	ours := []string{"LANG=de", "LC_ALL=en", "LC_=", "X=1", "XY=2", "XYZ=3", "GONE=4", "a=5", "PATH=/bin", "odd"}
	require.Equal(t, []EnvVar{
		{"LANG", "de"}, {"LC_ALL", "en"}, {"LC_", ""}, {"XY", "2"},
		{"LC_ALL", "C"}, {"A", "b c"}, {"TERM", "dumb"},
	}, c.Environment(ours))
	require.Equal(t, "dumb", c.TermName("xterm"))
	require.Equal(t, "xterm", (&Config{}).TermName("xterm"))
}
