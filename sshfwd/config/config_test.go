package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/usertext"

	"gpg-bridge/internal/testkit/env"
)

const sampleG = `host web
user bob
hostname 10.0.0.1
port 2222
addressfamily inet6
batchmode yes
checkhostip no
hashknownhosts yes
identitiesonly yes
kbdinteractiveauthentication no
passwordauthentication no
pubkeyauthentication unbound
requesttty true
stricthostkeychecking accept-new
tcpkeepalive no
exitonforwardfailure yes
numberofpasswordprompts 1
serveralivecountmax 5
serveraliveinterval 15
ciphers aes128-ctr,aes256-ctr
macs hmac-sha1
hostkeyalgorithms ssh-ed25519,rsa-sha2-512
hostkeyalias backend
identityagent none
loglevel ERROR
preferredauthentications password,publickey
sessiontype none
proxyjump a@b:23,[::1]:24
identityfile ~/.ssh/%h_%r
identityfile /keys/a b
sendenv LC_*
sendenv LANG
setenv A=b c
ipqos af21 none
enableescapecommandline no
userknownhostsfile /dev/null /nonexistent
connecttimeout 3
escapechar \^X
remotecommand uptime
`

func TestNewConfigReadsWhatSSHPrints(t *testing.T) {
	home, err := homeDir()
	require.NoError(t, err)
	defaults := Settings{"macs": {"hmac-sha1"}, "hostkeyalgorithms": {"rsa-sha2-512,ssh-ed25519"}}
	c, err := newConfig(To("web"), parseSettings([]byte(sampleG)), defaults)
	require.NoError(t, err)
	require.Equal(t, &Config{
		Destination: "web", OriginalHost: "web", Hostname: "10.0.0.1", Port: 2222, User: "bob",
		IdentityFiles: []string{filepath.Join(home, ".ssh", "10.0.0.1_bob"), "/keys/a b"},
		IdentityAgent: "none", IdentitiesOnly: true, IPQoS: QoS{Interactive: 0x48, Bulk: NoQoS},
		UserKnownHostsFiles: []string{"/dev/null", "/nonexistent"}, HostKeyAlias: "backend",
		StrictHostKeyChecking: StrictAcceptNew, HashKnownHosts: true, UpdateHostKeys: UpdateNo, FingerprintHash: "SHA256", RequiredRSASize: 1024,
		HostKeyAlgorithms: []string{"ssh-ed25519", "rsa-sha2-512"}, Ciphers: []string{"aes128-ctr", "aes256-ctr"}, MACs: []string{"hmac-sha1"},
		HostKeyAlgorithmsOrdered: true,
		PreferredAuthentications: []string{"password", "publickey"}, PubkeyAuthentication: true,
		NumberOfPasswordPrompts: 1, BatchMode: true, ConnectTimeout: 3 * time.Second,
		ServerAliveInterval: 15 * time.Second, ServerAliveCountMax: 5, AddressFamily: "inet6", ConnectionAttempts: 1,
		ProxyJump: "a@b:23,[::1]:24", RequestTTY: "yes", RemoteCommand: "uptime", SessionType: "none",
		SendEnv: []string{"LC_*", "LANG"}, SetEnv: []string{"A=b c"}, EscapeChar: "^X",
		ExitOnForwardFailure: true, Forwards: Forwards{StreamLocalBindMask: defaultBindMask}, LogLevel: usertext.Error,
	}, c)
}

func TestNewConfigRefuses(t *testing.T) {
	for _, text := range []string{
		"", "hostname h\nuser u\nport 0", "hostname h\nuser u\nport x", "hostname h\nuser u\nport 70000",
		"hostname h\nport 22", "hostname h\nuser u\nconnecttimeout soon", "hostname h\nuser u\nidentityfile %Z",
		"hostname h\nuser u\nidentityfile ${GB_TEST_UNSET}", "hostname h\nuser u\nidentityfile ~nosuchuser0/x",
	} {
		_, err := newConfig(To("h"), parseSettings([]byte(text)), nil)
		var bad *Error
		require.ErrorAs(t, err, &bad, text)
		require.NotEmpty(t, bad.Hint())
	}
}

func TestResolveRefusesDestinations(t *testing.T) {
	for _, d := range []string{"", "-oProxyCommand=touch /tmp/x", "-h", "a b", "a\nb", "a\x00b", "a\x1bb"} {
		_, err := Resolve(t.Context(), To(d))
		var bad *Error
		require.ErrorAs(t, err, &bad, d)
	}
}

func TestResolveAsSSHDoes(t *testing.T) {
	env.Tool(t, "ssh")
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(`
Match originalhost web exec "true"
  HostName real.example
  User matched
Host web
  Port 2200
  IdentityFile /keys/from-config
  Ciphers aes256-ctr
  StrictHostKeyChecking off
`), 0o600))
	c, err := Resolve(t.Context(), To("web", "-F", file, "-p", "23", "-4", "-o", "ConnectTimeout=7", "-o", "User second", "-J", "jump").Batch())
	require.NoError(t, err)
	require.Equal(t, "real.example", c.Hostname)
	require.Equal(t, "web", c.OriginalHost)
	require.Equal(t, "second", c.User)
	require.Equal(t, 23, c.Port)
	require.Equal(t, "inet", c.AddressFamily)
	require.Equal(t, 7*time.Second, c.ConnectTimeout)
	require.Equal(t, "jump", c.ProxyJump)
	require.Equal(t, StrictNo, c.StrictHostKeyChecking)
	require.Equal(t, []string{"/keys/from-config"}, c.IdentityFiles)
	require.False(t, c.IdentitiesAreDefaults)
	require.True(t, c.BatchMode)
	require.Equal(t, []string{"aes256-ctr"}, c.Ciphers)
	require.Contains(t, c.KexAlgorithms, "curve25519-sha256")
	require.Contains(t, c.MACs, "hmac-sha2-256")
	require.NotEmpty(t, c.HostKeyAlgorithms)

	c, err = Resolve(t.Context(), To("ssh://me@other:77", "-F", "none", "-i", "/nonexistent/key"))
	require.NoError(t, err)
	require.Equal(t, []string{"other", "me"}, []string{c.OriginalHost, c.User})
	require.Equal(t, 77, c.Port)
	require.True(t, c.IdentitiesAreDefaults)
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], "/nonexistent/key")

	_, err = Resolve(t.Context(), To("web", "-F", file, "-o", "Frobnicate=yes"))
	var bad *Error
	require.ErrorAs(t, err, &bad)
	require.Contains(t, err.Error(), "frobnicate")
}

// Without ssh, the files are read as ssh would read them.
func TestFallbackAgreesWithSSH(t *testing.T) {
	path := env.Tool(t, "ssh")
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(`
IdentityFile ~/.ssh/first
Host web
  HostName %h.Example
  User bob
  Port 2200
  IdentityFile /keys/%h_%p
  StrictHostKeyChecking accept-new
  UserKnownHostsFile ~/.ssh/kh /etc/kh
  Ciphers aes256-ctr,aes128-ctr
  ServerAliveInterval 30
Host !web *
  User nobody
Match all
  ConnectTimeout 9
Host *
  PreferredAuthentications publickey
  ProxyJump jump
  User late
`), 0o600))
	for _, o := range []Options{
		To("web"),
		To("alice@web", "-p", "24"),
		To("ssh://alice@web:25"),
		To("other", "-l", "u", "-i", file, "-6"),
		To("web", "-o", "Port=26", "-o", "IdentitiesOnly yes", "-o", "Port=27").Batch(),
		To("web", "-F", "none"),
		To("alice@web", "-l", "bob", "-p", "26", "-o", "Port=27"),
		To("web", "-o", "User=carol", "-l", "bob", "-o", "Port=27", "-p", "26"),
		{Destination: "a@web", Words: []string{"-p26", "a@web", "-lb", "-p27", "-4", "-6", "-oIdentityFile=" + file, "-i", file, "--"}},
		To("web", "-A", "-a", "-tt", "-N", "-n", "-e", "none", "-b", "127.0.0.1", "-B", "lo", "-c", "aes128-ctr", "-m", "hmac-sha1"),
		To("web", "-t", "-T", "-t", "-o", "RequestTTY=force", "-o", "EscapeChar=none", "-e", "^A", "-q"),
		To("web", "-g", "-o", "GatewayPorts=no", "-o", "ForwardAgent=yes", "-a", "-J", "other", "-v"),
		To("web", "-A", "-o", "LogLevel=ERROR", "-o", "StdinNull=yes"),
	} {
		if o.configFile() == "" {
			o.Words = append([]string{"-F", file}, o.Words...)
		}
		want, err := resolveWithSSH(t.Context(), program{path: path}, o)
		require.NoError(t, err)
		got, err := resolveWithoutSSH(o)
		require.NoError(t, err)
		// What differs by version or distribution.
		want.GlobalKnownHostsFiles, got.GlobalKnownHostsFiles = nil, nil
		want.Warnings = nil // of -v
		want.KexAlgorithms, got.KexAlgorithms = nil, nil
		if len(want.Ciphers) > 2 { // the default
			want.Ciphers, got.Ciphers = nil, nil
		}
		want.IPQoS, got.IPQoS = QoS{}, QoS{}
		if want.IdentitiesAreDefaults {
			want.IdentityFiles, got.IdentityFiles = nil, nil
		}
		if o.BatchMode {
			got.ServerAliveInterval = want.ServerAliveInterval // Debian's ssh
		}
		require.Equal(t, want, got, o)
	}
}

func TestFallbackRefusesWhatItCannotRead(t *testing.T) {
	for _, text := range []string{
		"Match user bob\n  Port 2", "Match exec true\n Port 2", "Match host a\n Port 2", "Match=host a\n Port 2", "Host a\n  Ciphers +aes128-cbc", "IdentityAgent /run/%u/agent",
	} {
		file := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
		_, err := resolveWithoutSSH(To("a", "-F", file))
		var bad *Error
		require.ErrorAs(t, err, &bad, text)
		require.Contains(t, bad.Hint(), "OpenSSH")

		outer := filepath.Join(t.TempDir(), "outer")
		require.NoError(t, os.WriteFile(outer, []byte("Include "+file+"\n"), 0o600))
		_, err = resolveWithoutSSH(To("a", "-F", outer))
		require.ErrorAs(t, err, &bad, text)
	}
	_, err := resolveWithoutSSH(To("a", "-F", "/nonexistent"))
	require.Error(t, err)
	_, err = resolveWithoutSSH(To("a", "-F", "none", "-o", "x"))
	require.Error(t, err)
}

func TestExpandTokens(t *testing.T) {
	t.Setenv("GB_TEST_DIR", "/env")
	c := &Config{OriginalHost: "web", Hostname: "web.example", Port: 22, User: "bob", ProxyJump: "j"}
	host, err := os.Hostname()
	require.NoError(t, err)
	for raw, want := range map[string]string{
		"/k/%h/%n/%p/%r/%j/%%": "/k/web.example/web/22/bob/j/%",
		"${GB_TEST_DIR}/x":     "/env/x",
		"/%k":                  "/web",
		"/%i":                  "/" + strconv.Itoa(os.Getuid()),
		"/%l":                  "/" + host,
		"/a b":                 "/a b",
		"/trailing%":           "/trailing%",
		"~root/x":              "/root/x",
	} {
		got, err := c.expandPath(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
}

// Where ssh shares its connections is what ssh prints for the user's flags: our own, such
// as BatchMode, do not change it.
func TestControlPath(t *testing.T) {
	t.Parallel()
	ssh := env.Tool(t, "ssh")
	for _, test := range []struct {
		lines   string
		master  bool
		persist time.Duration
		none    bool
	}{
		{lines: "ControlPath /tmp/%C-%r@%h:%p\n ControlMaster auto\n ControlPersist 10m", master: true, persist: 10 * time.Minute},
		{lines: "ControlPath /tmp/%n%%\n ControlMaster ask\n ControlPersist yes", master: true},
		{lines: "ControlPath ~/.ssh/%L-%u\n ControlPersist 1", persist: time.Second},
		{lines: "ControlPath tramp.%C\n ControlMaster auto\n ControlPersist no", master: true},
		{lines: "ControlPath none\n ControlMaster auto", none: true},
		{lines: "ControlMaster auto", none: true},
	} {
		file := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(file, []byte("Host dev\n HostName example.org\n User bob\n Port 2222\n "+test.lines+"\n"), 0o600))
		config, err := Resolve(t.Context(), To("dev", "-F", file, "-l", "bob", "-p", "2222").Batch())
		require.NoError(t, err)
		require.Equal(t, test.master, config.ControlMaster, test.lines)
		require.Equal(t, test.persist, config.ControlPersist, test.lines)
		out, err := exec.Command(ssh, "-G", "-F", file, "dev").Output()
		require.NoError(t, err)
		require.Equal(t, test.none, config.ControlPath == "")
		require.Equal(t, test.none, !strings.Contains(string(out), "\ncontrolpath "))
		if !test.none {
			_, path, _ := strings.Cut(string(out), "\ncontrolpath ")
			path, err = filepath.Abs(strings.SplitN(path, "\n", 2)[0])
			require.NoError(t, err)
			require.Equal(t, path, config.ControlPath)
		}
	}
}
