package sshfwd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// The options about known_hosts, with which ssh and we must do the same. In the options
// {DIR} is a directory with lists of revoked keys; knownHostsCase has the other
// placeholders.
var hostKeyOptionCases = []knownHostsCase{
	{name: "revoked by list", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/list"}, want: "refused"},
	{name: "not in the list", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/others"}, want: "ok"},
	{name: "list without keys", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/comments"}, want: "ok"},
	{name: "list with garbage", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/garbage"}, want: "refused"},
	{name: "garbage behind the key", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/garbage-last"}, want: "refused"},
	{name: "no list", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/none"}, want: "refused"},
	{name: "list set to none", text: "* {ED25519}", options: []string{"RevokedHostKeys=none"}, want: "ok"},
	{name: "another key of the host's is revoked", text: "* {RSA}", options: []string{"RevokedHostKeys={DIR}/list"}, want: "ok"},
	{name: "revoked by KRL", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl"}, want: "refused"},
	{name: "not in the KRL", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl-others"}, want: "ok"},
	{name: "SHA1 in a KRL", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl-sha1"}, want: "refused"},
	{name: "SHA256 in a KRL", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl-sha256"}, want: "refused"},
	{name: "KRL cut short", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl-short"}, want: "refused"},
	{name: "KRL of nothing", text: "* {ED25519}", options: []string{"RevokedHostKeys={DIR}/krl-empty"}, want: "ok"},

	{name: "known by command", text: "", options: []string{"KnownHostsCommand=/bin/echo %H {ED25519}"}, want: "ok"},
	{name: "command says another key", text: "", options: []string{"KnownHostsCommand=/bin/echo %H {OTHER}"}, want: "refused"},
	{name: "command and file", text: "[127.0.0.1]:{PORT} {OTHER}", options: []string{"KnownHostsCommand=/bin/echo %H {ED25519}"}, want: "ok"},
	{name: "command revokes", text: "* {ED25519}", options: []string{"KnownHostsCommand=/bin/echo @revoked %H {ED25519}"}, want: "refused"},
	{name: "command gets the key", text: "", options: []string{"KnownHostsCommand=/bin/echo * %t %K"}, want: "ok"},
	{name: "command gets the wrong type", text: "", options: []string{"KnownHostsCommand=/bin/echo * ssh-rsa %K"}, want: "refused"},
	{name: "command's other name", text: "", options: []string{"KnownHostsCommand=/bin/echo elsewhere {ED25519}"}, want: "refused"},
	{name: "command for the plain name", text: "", options: []string{"KnownHostsCommand=/bin/echo 127.0.0.1 {ED25519}"}, want: "refused"},
	{name: "command orders", text: "", options: []string{`KnownHostsCommand=/bin/sh -c "case %I in ORDER) echo 127.0.0.1 '{RSA}';; *) echo '%H {RSA}';; esac"`}, want: "ok"},
	{name: "command orders by another", text: "", options: []string{`KnownHostsCommand=/bin/sh -c "case %I in ORDER) echo 127.0.0.1 '{RSA}';; *) echo '%H {ED25519}';; esac"`}, want: "refused"},
	{name: "command with the fingerprint", text: "", options: []string{`KnownHostsCommand=/bin/sh -c "case %f in NONE) exit 0;; SHA256:*) echo '%H {ED25519}';; esac"`}, want: "ok"},
	{name: "command fails", text: "* {ED25519}", options: []string{"KnownHostsCommand=/bin/false"}, want: "refused"},
	{name: "command fails before the key is known", text: "* {ED25519}", options: []string{`KnownHostsCommand=/bin/sh -c "test %t != NONE"`}, want: "refused"},
	{name: "command fails for the key", text: "* {ED25519}", options: []string{`KnownHostsCommand=/bin/sh -c "test %t = NONE"`}, want: "refused"},
	{name: "command is no program", text: "* {ED25519}", options: []string{"KnownHostsCommand={DIR}/list"}, want: "refused"},
	{name: "command is not there", text: "* {ED25519}", options: []string{"KnownHostsCommand=/nonexistent"}, want: "ok"},
	{name: "command is not absolute", text: "* {ED25519}", options: []string{"KnownHostsCommand=echo %H {OTHER}"}, want: "ok"},
	{name: "command prints rubbish", text: "* {ED25519}", options: []string{"KnownHostsCommand=/bin/echo rubbish @x y"}, want: "ok"},
	{name: "command with alias", text: "", options: []string{"HostKeyAlias=Bastion", "KnownHostsCommand=/bin/echo bastion {ED25519}"}, want: "ok"},
	{name: "command set to none", text: "* {ED25519}", options: []string{"KnownHostsCommand=none"}, want: "ok"},

	{name: "no authentication for localhost", text: "", options: []string{"NoHostAuthenticationForLocalhost=yes"}, want: "ok"},
	{name: "no authentication, key changed", text: "* {OTHER}", options: []string{"NoHostAuthenticationForLocalhost=yes"}, want: "ok"},
	{name: "no authentication, but revoked by list", text: "", options: []string{"NoHostAuthenticationForLocalhost=yes", "RevokedHostKeys={DIR}/list"}, want: "refused"},
	{name: "no authentication, with alias", text: "", options: []string{"NoHostAuthenticationForLocalhost=yes", "HostKeyAlias=x"}, want: "refused"},
	{name: "no authentication, through a proxy", text: "", options: []string{"NoHostAuthenticationForLocalhost=yes", "ProxyCommand=socat - TCP:%h:%p"}, want: "refused"},
	{name: "no user file, accept-new", text: "", options: []string{"UserKnownHostsFile=none", "StrictHostKeyChecking=accept-new"}, want: "refused"},
	{name: "no user file, no checking", text: "", options: []string{"UserKnownHostsFile=NONE", "StrictHostKeyChecking=no"}, want: "refused"},
	{name: "no user file, other host known to all", text: "elsewhere {ED25519}", options: []string{"UserKnownHostsFile=none", "GlobalKnownHostsFile={FILE}", "StrictHostKeyChecking=no"}, want: "refused"},
	{name: "no user file, known to all", text: "* {ED25519}", options: []string{"UserKnownHostsFile=none", "GlobalKnownHostsFile={FILE}", "StrictHostKeyChecking=accept-new"}, want: "ok"},
	{name: "no user file, known by command", text: "", options: []string{"UserKnownHostsFile=none", "KnownHostsCommand=/bin/echo %H {ED25519}", "StrictHostKeyChecking=no"}, want: "ok"},
	{name: "no user file, no authentication", text: "", options: []string{"UserKnownHostsFile=none", "NoHostAuthenticationForLocalhost=yes"}, want: "ok"},
	{name: "user file that keeps nothing", text: "", options: []string{"UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=accept-new"}, want: "ok"},
	{name: "user file in doubt, not there", text: "", options: []string{"UserKnownHostsFile=\"{DIR}/not there\"", "StrictHostKeyChecking=accept-new"}, want: "ok"},
	{name: "hashed alias in capitals", text: "{HASH bastion} {ED25519}", options: []string{"HostKeyAlias=BASTION"}, want: "ok"},
	{name: "CheckHostIP on loopback", text: "[localhost]:{PORT} {ED25519}\n[127.0.0.1]:{PORT} {OTHER}", options: []string{"HostName=localhost", "CheckHostIP=yes"}, want: "ok"},
	{name: "through a proxy, by name and port", text: "[127.0.0.1]:{PORT} {ED25519}", options: []string{"ProxyCommand=socat - TCP:%h:%p"}, want: "ok"},
	{name: "through a proxy, key changed", text: "[127.0.0.1]:{PORT} {OTHER}", options: []string{"ProxyCommand=socat - TCP:%h:%p"}, want: "refused"},
}

var certOptionCases = []knownHostsCase{
	{name: "certificate", text: "@cert-authority * {CA}", want: "ok"},
	{name: "its key is revoked", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/list"}, want: "refused"},
	{name: "its authority is revoked", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/ca"}, want: "refused"},
	{name: "its serial is revoked", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-serial"}, want: "refused"},
	{name: "its serial is in a range", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-range"}, want: "refused"},
	{name: "its serial is in a bitmap", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-bitmap"}, want: "refused"},
	{name: "other serials", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-serials"}, want: "ok"},
	{name: "its id is revoked", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-id"}, want: "refused"},
	{name: "its id is revoked for all", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-id-all"}, want: "refused"},
	{name: "its serial at another authority", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-other-ca"}, want: "ok"},
	{name: "its authority is in a KRL", text: "@cert-authority * {CA}", options: []string{"RevokedHostKeys={DIR}/krl-ca"}, want: "refused"},
	{name: "authority by command", text: "", options: []string{"KnownHostsCommand=/bin/echo @cert-authority %H {CA}"}, want: "ok"},
}

// makeKRL has the real ssh-keygen write a list.
func makeKRL(t *testing.T, dir, name, spec string, args ...string) {
	t.Helper()
	file := filepath.Join(dir, name+".spec")
	require.NoError(t, os.WriteFile(file, []byte(spec+"\n"), 0o600))
	out, err := exec.Command(env.Tool(t, "ssh-keygen"), append(append([]string{"-k", "-f", filepath.Join(dir, name)}, args...), file)...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func writeLists(t *testing.T, dir, key, other string) {
	t.Helper()
	for name, text := range map[string]string{
		"list": "# revoked\n\n  " + other + "\n" + key + " stolen\n", "others": other + "\n", "comments": "# none\n\n",
		"garbage": "rubbish\n" + other + "\n", "garbage-last": key + "\nrubbish\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

func TestHostKeyOptionsAreOpenSSHs(t *testing.T) {
	env.Tool(t, "socat")
	t.Run("keys", func(t *testing.T) {
		srv, dir := startHostKeyServer(t), env.ShortDir(t)
		key, other := srv.keys["ED25519"], srv.keys["OTHER"]
		writeLists(t, dir, key, other)
		makeKRL(t, dir, "krl", other+"\n"+key)
		makeKRL(t, dir, "krl-others", other)
		makeKRL(t, dir, "krl-sha1", "sha1: "+key)
		makeKRL(t, dir, "krl-sha256", "sha256: "+key)
		makeKRL(t, dir, "krl-empty", "")
		whole, err := os.ReadFile(filepath.Join(dir, "krl-others"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "krl-short"), whole[:len(whole)-3], 0o600))
		compareOptions(t, srv, dir, hostKeyOptionCases)
	})
	t.Run("certificates", func(t *testing.T) {
		srv, dir := startCertServer(t, "-h"), env.ShortDir(t)
		writeLists(t, dir, srv.keys["CERT_KEY"], srv.keys["OTHER"])
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ca"), []byte(srv.keys["CA"]+"\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "other_ca"), []byte(srv.keys["OTHER_CA"]+"\n"), 0o600))
		ca := []string{"-s", filepath.Join(dir, "ca")}
		makeKRL(t, dir, "krl-serial", "serial: 7\nserial: 77", ca...)
		makeKRL(t, dir, "krl-range", "serial: 3-4000000", ca...)
		makeKRL(t, dir, "krl-bitmap", "serial: 1\nserial: 3\nserial: 5\nserial: 7\nserial: 10\nserial: 12", ca...)
		makeKRL(t, dir, "krl-serials", "serial: 1-6\nserial: 8\nserial: 10\nserial: 13\nserial: 70-700", ca...)
		makeKRL(t, dir, "krl-id", "id: other\nid: test", ca...)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "krl-id-all"), sshkeys.KRLOfID("test"), 0o600))
		makeKRL(t, dir, "krl-other-ca", "serial: 7\nid: test", "-s", filepath.Join(dir, "other_ca"))
		makeKRL(t, dir, "krl-ca", srv.keys["CA"])
		compareOptions(t, srv, dir, certOptionCases)
	})
}

func compareOptions(t *testing.T, srv hostKeyServer, dir string, cases []knownHostsCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "known_hosts")
			require.NoError(t, os.WriteFile(file, []byte(srv.fill(c.text, file)), 0o600))
			var options []string
			for _, o := range c.options {
				options = append(options, strings.ReplaceAll(srv.fill(o, file), "{DIR}", dir))
			}
			options = append(options, "UserKnownHostsFile="+file)
			require.Equal(t, c.want, opensshAnswer(srv, options), "OpenSSH")
			require.Equal(t, c.want, ourAnswer(t, srv, options), "we")
		})
	}
}

func opensshAnswer(srv hostKeyServer, options []string) string {
	var args []string
	for _, o := range options {
		args = append(args, "-o", o)
	}
	out, err := srv.SSH(append(args, "host", "true")...).CombinedOutput()
	text := string(out)
	switch {
	case err == nil:
		return "ok"
	case strings.Contains(text, "Host key verification failed"), strings.Contains(text, "KnownHostsCommand failed"):
		return "refused"
	}
	return text
}

func ourAnswer(t *testing.T, srv hostKeyServer, options []string) string {
	t.Helper()
	resolved, err := config.Resolve(t.Context(), config.To("host", append([]string{"-F", srv.ConfigFile}, config.OptionFlags(options)...)...))
	require.NoError(t, err)
	client, err := Dial(dialContext(t), resolved, DialOptions{Log: env.QuietLog()})
	if err == nil {
		require.NoError(t, client.Close())
		return "ok"
	}
	var refused interface {
		error
		Hint() string
	}
	require.ErrorAs(t, err, &refused)
	require.NotEmpty(t, refused.Hint())
	require.NotContains(t, refused.Error(), "\n")
	switch refused.(type) {
	case *hostkey.Error, *config.Error:
		return "refused"
	}
	return err.Error()
}
