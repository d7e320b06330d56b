package sshfwd

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
)

// An updateCase is what UpdateHostKeys makes of known_hosts files. The texts are those of
// knownHostsCase; {FILE2} is a second file of the user's and {GLOBAL} the system's. {HASHED}
// in want is any hash of the server's name.
type updateCase struct {
	name                 string
	text, second, global string
	options              []string // UpdateHostKeys=yes, if there is none
	want, wantSecond     string   // if something changes
	wrong                bool     // the server is refused
	isMissing            bool     // the first file does not exist: ssh then loses the keys
}

const here = "[127.0.0.1]:{PORT} "

var updateCases = []updateCase{
	{name: "keys are learned", text: here + "{ED25519}\n", want: here + "{ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "by default not with a file of the user's choice", text: here + "{ED25519}\n", options: []string{"ForwardAgent=no"}},
	{name: "no", text: here + "{ED25519}\n", options: []string{"UpdateHostKeys=no"}},
	{name: "nothing is new", text: here + "{ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "an obsolete key goes", text: here + "{OTHER}\n" + here + "{ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n", want: here + "{ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "old and new", text: "# mine\n\n" + here + "{OTHER} old\nelsewhere {OTHER2}\n" + here + "{ED25519} kept\nbad\n", want: "# mine\n\nelsewhere {OTHER2}\n" + here + "{ED25519} kept\nbad\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "obsolete here, in use elsewhere", text: here + "{OTHER}\n" + here + "{ED25519}\nelsewhere {OTHER}\n"},
	{name: "a key known elsewhere", text: here + "{ED25519}\nelsewhere {ED25519}\n"},
	{name: "a new key known elsewhere", text: here + "{ED25519}\nelsewhere {RSA}\n"},
	{name: "lines that cannot be read stay", text: here + "ssh-ed25519 AAAA\n" + here + "{ED25519}\n|1|x|y {OTHER}\n@what x {OTHER}\n", want: here + "ssh-ed25519 AAAA\n" + here + "{ED25519}\n|1|x|y {OTHER}\n@what x {OTHER}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "hashed line", text: "{HASH [127.0.0.1]:{PORT}} {ED25519}\n", want: "{HASHED} {ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "HashKnownHosts", text: here + "{ED25519}\n", options: []string{"UpdateHostKeys=yes", "HashKnownHosts=yes"}, want: here + "{ED25519}\n{HASHED} {RSA}\n{HASHED} {ECDSA}\n"},
	{name: "an alias", text: "a {ED25519}\n", options: []string{"UpdateHostKeys=yes", "HostKeyAlias=A"}, want: "a {ED25519}\na {RSA}\na {ECDSA}\n"},
	{name: "known without its port", text: "127.0.0.1 {ED25519}\n"},
	{name: "three names", text: "g,h," + here + "{ED25519}\n"},
	{name: "wildcard", text: "[127.0.0.?]:{PORT} {ED25519}\n"},
	{name: "an authority's line", text: here + "{ED25519}\n@cert-authority * {OTHER}\n"},
	{name: "a revoked key", text: here + "{ED25519}\n@revoked * {OTHER}\n"},
	{name: "only some algorithms", text: here + "{ED25519}\n" + here + "{ECDSA}\n", options: []string{"UpdateHostKeys=yes", "HostKeyAlgorithms=ssh-ed25519,rsa-sha2-256"}, want: here + "{ED25519}\n" + here + "{RSA}\n"},
	{name: "connected by RSA", text: here + "{RSA}\n", options: []string{"UpdateHostKeys=yes", "HostKeyAlgorithms=rsa-sha2-256,ssh-ed25519"}, want: here + "{RSA}\n" + here + "{ED25519}\n"},
	{name: "connected by ECDSA", text: here + "{ECDSA}\n", options: []string{"UpdateHostKeys=yes", "HostKeyAlgorithms=ecdsa-sha2-nistp256,rsa-sha2-512"}, want: here + "{ECDSA}\n" + here + "{RSA}\n"},
	{name: "the key has changed", text: here + "{OTHER}\n", wrong: true},
	{name: "the key is unknown", text: "", options: []string{"UpdateHostKeys=yes", "StrictHostKeyChecking=yes"}, wrong: true},
	{name: "accepted by itself", text: "", options: []string{"UpdateHostKeys=yes", "StrictHostKeyChecking=accept-new"}, want: here + "{ED25519}\n"},
	{name: "accepted by the user", text: "", options: []string{"UpdateHostKeys=yes", "StrictHostKeyChecking=ask", "BatchMode=no"}, want: here + "{ED25519}\n" + here + "{RSA}\n" + here + "{ECDSA}\n"},
	{name: "known to the system", global: here + "{ED25519}\n", options: []string{"UpdateHostKeys=yes", "GlobalKnownHostsFile={GLOBAL}"}},
	{name: "known from a command", options: []string{"UpdateHostKeys=yes", "KnownHostsCommand=/bin/cat {GLOBAL}"}, global: here + "{ED25519}\n"},
	{name: "this host itself", text: here + "{ED25519}\n", options: []string{"UpdateHostKeys=yes", "NoHostAuthenticationForLocalhost=yes"}},
	{name: "a second file", text: "", second: here + "{ED25519}\n" + here + "{RSA}\nelsewhere {OTHER}\n", want: here + "{RSA}\n" + here + "{ECDSA}\n" + here + "{ED25519}\n", wantSecond: "elsewhere {OTHER}\n"},
	{name: "the first file is missing", isMissing: true, second: here + "{ED25519}\n", want: here + "{RSA}\n" + here + "{ECDSA}\n" + here + "{ED25519}\n"},
}

// The same known_hosts files become the same as with the installed ssh. It is asked for its
// yes through an askpass program.
func TestUpdateHostKeysEqualsOpenSSH(t *testing.T) {
	srv := startHostKeyServer(t)
	srv.keys["OTHER2"] = strings.TrimSpace(sshkeys.Authorized(sshkeys.New(t)))
	yes := filepath.Join(t.TempDir(), "yes")
	require.NoError(t, os.WriteFile(yes, []byte("#!/bin/sh\necho yes\n"), 0o700))
	for _, c := range updateCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := newUpdateFiles(t, srv, c), newUpdateFiles(t, srv, c)
			cmd := srv.SSH(append(config.OptionFlags(theirs.options), "host", "sleep 0.1")...)
			cmd.Env = append(os.Environ(), "SSH_ASKPASS="+yes, "SSH_ASKPASS_REQUIRE=force")
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.wrong, err != nil, "%s", out)
			ours.connect(t, c)
			first, second := ours.read(t, "first"), ours.read(t, "second")
			require.Equal(t, c.wanted(), []string{first, second})
			if c.isMissing {
				require.Equal(t, []string{missing, ""}, []string{theirs.read(t, "first"), theirs.read(t, "second")})
				return
			}
			for _, name := range []string{"first", "first.old", "second", "second.old"} {
				require.Equal(t, theirs.read(t, name), ours.read(t, name), name)
			}
		})
	}
}

// updateFiles are the files of one run.
type updateFiles struct {
	dir     string
	options []string
	srv     hostKeyServer
}

func newUpdateFiles(t *testing.T, srv hostKeyServer, c updateCase) updateFiles {
	t.Helper()
	f := updateFiles{dir: t.TempDir(), srv: srv}
	for name, text := range map[string]string{"first": c.text, "second": c.second, "global": c.global} {
		if name == "first" && !c.isMissing || text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), []byte(srv.fill(text, "")), 0o600))
		}
	}
	options := c.options
	if options == nil {
		options = []string{"UpdateHostKeys=yes"}
	}
	for _, o := range options {
		f.options = append(f.options, strings.ReplaceAll(o, "{GLOBAL}", filepath.Join(f.dir, "global")))
	}
	f.options = append(f.options, "UserKnownHostsFile="+filepath.Join(f.dir, "first")+" "+filepath.Join(f.dir, "second"))
	return f
}

// connect logs in with our client, and returns when the update is done, if there is one.
func (f updateFiles) connect(t *testing.T, c updateCase) {
	t.Helper()
	resolved, err := config.Resolve(t.Context(), config.To("host", append([]string{"-F", f.srv.ConfigFile}, config.OptionFlags(f.options)...)...))
	require.NoError(t, err)
	said := &lockedBuffer{}
	client, err := Dial(dialContext(t), resolved, DialOptions{
		Log: slog.New(slog.NewTextHandler(said, nil)), Prompter: &asker.Script{Answers: []string{"yes"}},
	})
	require.Equal(t, c.wrong, err != nil)
	if err != nil {
		return
	}
	defer client.Close()
	status, err := client.Session(t.Context(), SessionRequest{Command: "true"})
	require.NoError(t, err)
	require.Zero(t, status)
	if resolved.UpdateHostKeys != config.UpdateNo {
		require.Eventually(t, func() bool { return strings.Contains(said.String(), "in known_hosts") }, 20*time.Second, 5*time.Millisecond)
	}
}

// missing is the content of a file that does not exist.
const missing = "(missing)"

var hashedName = regexp.MustCompile(`(?m)^\|1\|[^ ]{20,}`)

// read returns a file with keys, port and hashes as they are in an updateCase.
func (f updateFiles) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		require.ErrorIs(t, err, os.ErrNotExist)
		return missing
	}
	text := strings.ReplaceAll(hashedName.ReplaceAllString(string(data), "{HASHED}"), fmt.Sprint("]:", f.srv.Port), "]:{PORT}")
	for name, key := range f.srv.keys {
		text = strings.ReplaceAll(text, key, "{"+name+"}")
	}
	return text
}

// wanted is what the user's two files are to be.
func (c updateCase) wanted() []string {
	first, second := strings.ReplaceAll(c.text, "{HASH [127.0.0.1]:{PORT}}", "{HASHED}"), c.second
	if c.want != "" {
		first, second = c.want, c.wantSecond
	}
	if c.second == "" {
		second = missing
	}
	return []string{first, second}
}
