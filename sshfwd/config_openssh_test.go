package sshfwd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/sshkeys"
	"gpg-bridge/sshfwd/config"
	"gpg-bridge/sshfwd/hostkey"
)

// A configCase is an ssh_config and a command line, with which ssh and we must
// do the same to two real servers: the same connections, with the same host
// key algorithm, the same keys offered to the same accounts in the same order,
// and the same end. In the texts {A} and {B} are the servers' ports, {BOB} an
// account, {DIR} the directory of the keys k1 to k5, and {CASE} the
// case's own.
type configCase struct {
	name  string
	text  string
	files map[string]string // in {CASE}, for Include
	o     config.Options
	// want is what ssh does, so that the table can be read: per server the host
	// key's type, -user:key for a key that was refused, +user:key for the one
	// that was accepted, ?user for one that does not exist. The test checks it against the real ssh.
	want string
}

// Server A lets k1 and k3 (ECDSA) in as root, and k2 as bob; server B lets k2
// and k4 (RSA) in as root and k1 as bob. Everyone else is k5. A has an Ed25519
// and an RSA host key, B an Ed25519 one.
var configCases = []configCase{
	{name: "port and key", text: "Host web\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "other port", text: "Host web\n Port {B}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "B ed25519 -root:k1 -root:k5; out"},
	{name: "first value wins", text: "Host web\n Port {A}\n IdentityFile {DIR}/k1\nHost *\n Port {B}", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "first block wins", text: "Host *\n Port {B}\n IdentityFile {DIR}/k2\nHost web\n Port {A}", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "keys add up", text: "Host web\n Port {A}\n IdentityFile {DIR}/k2\nHost w*\n IdentityFile {DIR}/k3", o: config.To("web"), want: "A ed25519 -root:k2 +root:k3; in"},
	{name: "other name", text: "Host web\n Port {A}\nHost db\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("db"), want: "B ed25519 +root:k2; in"},
	{name: "several patterns", text: "Host x y?b web\n Port {B}\n IdentityFile {DIR}/k4", o: config.To("ydb"), want: "B ed25519 -root:k4 -root:k5; out"},
	{name: "negated", text: "Host !web *\n Port {A}\nHost *\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "negated, other host", text: "Host !web *\n Port {A}\n IdentityFile {DIR}/k1\nHost *\n Port {B}", o: config.To("db"), want: "A ed25519 +root:k1; in"},
	{name: "case of Host", text: "Host WEB\n Port {A}\n IdentityFile {DIR}/k1\nHost *\n Port {B}", o: config.To("web"), want: "B ed25519 -root:k5; out"},
	{name: "user", text: "Host web\n User {BOB}\n Port {A}\n IdentityFile {DIR}/k1\n IdentityFile {DIR}/k2", o: config.To("web"), want: "A ed25519 -bob:k1 +bob:k2; in"},
	{name: "user in the destination", text: "Host web\n User root\n Port {A}\n IdentityFile {DIR}/k2", o: config.To("{BOB}@web"), want: "A ed25519 +bob:k2; in"},
	{name: "-l before User", text: "Host web\n User root\n Port {B}\n IdentityFile {DIR}/k1", o: config.To("web", "-l", "{BOB}"), want: "B ed25519 +bob:k1; in"},
	{name: "user twice", text: "Host web\n Port {B}\n IdentityFile {DIR}/k1", o: config.To("root@web", "-l", "{BOB}"), want: "B ed25519 +bob:k1; in"},
	{name: "nobody", text: "Host web\n Port {A}\n User no-such-user\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 ?no-such-user; out"},
	{name: "-p before Port", text: "Host web\n Port 1\n IdentityFile {DIR}/k1", o: config.To("web", "-o", "Port={A}"), want: "A ed25519 +root:k1; in"},
	{name: "-i first", text: "Host web\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web", "-i", "{DIR}/k2"), want: "A ed25519 -root:k2 +root:k1; in"},
	{name: "URI", text: "Host web\n Port 1\n IdentityFile {DIR}/k2", o: config.To("ssh://{BOB}@web:{A}"), want: "A ed25519 +bob:k2; in"},
	{name: "-o before the file", text: "Host web\n Port {A}\n User {BOB}\n IdentityFile {DIR}/k1", o: config.To("web", "-o", "User root"), want: "A ed25519 +root:k1; in"},
	{name: "Match host is HostName", text: "Host web\n HostName localhost\nMatch host localhost\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "Match host is not the alias", text: "Host web\n HostName localhost\nMatch host web\n Port {A}\nHost *\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Match originalhost", text: "Host web\n HostName localhost\nMatch originalhost web\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "Match user", text: "Match user {BOB}\n Port {A}\n IdentityFile {DIR}/k2\nMatch user root\n Port {B}\n IdentityFile {DIR}/k1", o: config.To("{BOB}@web"), want: "A ed25519 +bob:k2; in"},
	{name: "Match user, by User above", text: "Host web\n User {BOB}\nMatch user {BOB}\n Port {B}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "B ed25519 +bob:k1; in"},
	{name: "Match localuser", text: "Match localuser root,nobody\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "Match exec", text: "Match exec \"test %n = web\"\n Port {A}\n IdentityFile {DIR}/k1\nMatch exec \"test %n = db\"\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("db"), want: "B ed25519 +root:k2; in"},
	{name: "Match !exec", text: "Match !exec \"exit 1\"\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Match of two", text: "Match originalhost web user {BOB}\n Port {A}\nMatch originalhost web\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Match all", text: "Match all\n Port {A}\n IdentityFile {DIR}/k3", o: config.To("web"), want: "A ed25519 +root:k3; in"},
	{name: "Match final", text: "Match final host localhost\n Port {A}\n IdentityFile {DIR}/k1\nHost web\n HostName localhost", o: config.To("web"), want: "A ed25519 -root:k5 +root:k1; in"},
	{name: "Match final comes late", text: "Match final\n Port {A}\nHost web\n Port {B}\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Include", text: "Include {CASE}/more\nHost *\n Port {B}", files: map[string]string{"more": "Host web\n Port {A}\n IdentityFile {DIR}/k1"}, o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "Include in a Host", text: "Host db\n Include {CASE}/more\nHost *\n Port {B}\n IdentityFile {DIR}/k2", files: map[string]string{"more": "Port {A}\nIdentityFile {DIR}/k1"}, o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Include by glob and twice deep", text: "Include {CASE}/d*", files: map[string]string{"d1": "Include {CASE}/x", "d2": "Host *\n Port {A}\n IdentityFile {DIR}/k1", "x": "Host db\n Port 1\nHost web\n Port {B}\n IdentityFile {DIR}/k2"}, o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "Include of nothing", text: "Include {CASE}/none\nHost web\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "tokens of HostName", text: "Host 0\n HostName 127.0.%h.1\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("0"), want: "A ed25519 +root:k1; in"},
	{name: "tokens of IdentityFile", text: "Host k1\n Port {A}\n IdentityFile %d/../{DIR}/%n\nHost k2\n Port {B}\n IdentityFile {DIR}/%n", o: config.To("k2"), want: "B ed25519 +root:k2; in"},
	{name: "user and port in IdentityFile", text: "Host web\n Port {A}\n IdentityFile {CASE}/%r_%p\n IdentityFile {DIR}/k1", files: map[string]string{"root_{A}": "no key"}, o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "environment in IdentityFile", text: "Host web\n Port {A}\n IdentityFile ${GB_TEST_KEYS}/k3", o: config.To("web"), want: "A ed25519 +root:k3; in"},
	{name: "equals sign and quotes", text: "Host=web\nPort={A}\nIdentityFile=\"{DIR}/k1\"", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "key list with minus", text: "Host web\n Port {A}\n PubkeyAcceptedAlgorithms -ssh-ed25519\n IdentityFile {DIR}/k1\n IdentityFile {DIR}/k3", o: config.To("web"), want: "A ed25519 +root:k3; in"},
	{name: "key list alone", text: "Host web\n Port {A}\n PubkeyAcceptedAlgorithms ecdsa-sha2-nistp256\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "key list with plus", text: "Host web\n Port {B}\n PubkeyAcceptedAlgorithms +ssh-rsa\n IdentityFile {DIR}/k4", o: config.To("web"), want: "B ed25519 -root:k4 -root:k5; out"},
	{name: "host key list with hat", text: "Host web\n Port {A}\n HostKeyAlgorithms ^rsa-sha2-256\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A rsa-sha2-256 +root:k1; in"},
	{name: "host key list with minus", text: "Host web\n Port {A}\n HostKeyAlgorithms -ssh-ed25519\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A rsa-sha2-512 +root:k1; in"},
	{name: "host key list that fits nothing", text: "Host web\n Port {B}\n HostKeyAlgorithms rsa-sha2-512\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B; out"},
	{name: "cipher that the server lacks", text: "Host web\n Port {B}\n Ciphers 3des-cbc\n IdentityFile {DIR}/k2", o: config.To("web"), want: "B ed25519; out"},
	{name: "cipher", text: "Host web\n Port {A}\n Ciphers aes256-ctr\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519 +root:k1; in"},
	{name: "no public keys", text: "Host web\n Port {A}\n PubkeyAuthentication no\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "other methods only", text: "Host web\n Port {A}\n PreferredAuthentications password\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "no known hosts", text: "Host web\n Port {A}\n UserKnownHostsFile /dev/null\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "alias", text: "Host web\n Port {A}\n HostKeyAlias server-b\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "known hosts per host", text: "Host web\n Port {A}\n UserKnownHostsFile {CASE}/%n ~/nothing\n IdentityFile {DIR}/k1", o: config.To("web"), want: "A ed25519; out"},
	{name: "jump host", text: "Host jump\n Port {A}\n IdentityFile {DIR}/k1\nHost web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump jump", o: config.To("web"), want: "A ed25519 +root:k1; B ed25519 +root:k2; in"},
	{name: "jump host by -J", text: "Host web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump nowhere\nHost *\n IdentityFile {DIR}/k3", o: config.To("web", "-J", "localhost:{A}"), want: "A ed25519 +root:k3; B ed25519 +root:k2; in"},
	{name: "jump as another user", text: "Host web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump ssh://{BOB}@127.0.0.1:{A}\nHost 127.0.0.1\n IdentityFile {DIR}/k2", o: config.To("web"), want: "A ed25519 +bob:k2; B ed25519 +root:k2; in"},
	{name: "no jump", text: "Host web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump none\nHost *\n ProxyJump nowhere", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "ProxyCommand before ProxyJump", text: "Host web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyCommand none\n ProxyJump nowhere", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "jump host that refuses", text: "Host jump\n Port {A}\n IdentityFile {DIR}/k2\nHost web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump jump", o: config.To("web"), want: "A ed25519 -root:k2 -root:k5; out"},
	{name: "jump host that is not known", text: "Host jump\n Port {A}\n IdentityFile {DIR}/k1\n UserKnownHostsFile none\nHost web\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump jump", o: config.To("web"), want: "A ed25519; out"},
	{name: "jump host through another", text: "Host one\n Port {A}\n IdentityFile {DIR}/k1\nHost two\n Port {B}\n IdentityFile {DIR}/k2\n ProxyJump one\nHost web\n Port {A}\n IdentityFile {DIR}/k3\n ProxyJump two", o: config.To("web"), want: "A ed25519 +root:k1; A ed25519 +root:k3; B ed25519 +root:k2; in"},
	{name: "ProxyCommand", text: "Host web\n HostName localhost\n Port {B}\n IdentityFile {DIR}/k2\n ProxyCommand socat - TCP:%h:%p", o: config.To("web"), want: "B ed25519 +root:k2; in"},
	{name: "bad option", text: "Host web\n Frobnicate yes", o: config.To("web"), want: "out"},
	{name: "bad user", text: "Host web\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("a;b@web"), want: "out"},
	{name: "bad host", text: "Host *\n HostName 127.0.0.1\n Port {A}\n IdentityFile {DIR}/k1", o: config.To("we$b"), want: "out"},
}

// configLab is two servers that log what is done to them.
type configLab struct {
	a, b  *sshd.Server
	bob   string
	dir   string
	names map[string]string // fingerprints to names of keys
}

const configTail = `
Host *
  HostName 127.0.0.1
  User root
  IdentityFile {DIR}/k5
  UserKnownHostsFile {DIR}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  IdentityAgent none
  ConnectTimeout 20
  LogLevel ERROR
`

func newConfigLab(t *testing.T) *configLab {
	t.Helper()
	env.Tool(t, "socat")
	l := &configLab{dir: env.ShortDir(t), names: map[string]string{}}
	require.NoError(t, os.Chmod(l.dir, 0o755))
	l.bob = sshd.NewAccount(t, sshd.AccountConfig{Shell: "sh"}).Name
	keys := map[string]string{}
	for name, args := range map[string][]string{
		"k1": {"-t", "ed25519"}, "k2": {"-t", "ed25519"}, "k3": {"-t", "ecdsa"}, "k4": {"-t", "rsa", "-b", "2048"}, "k5": {"-t", "ed25519"},
	} {
		keys[name] = sshkeys.PublicLine(t, sshkeys.Keygen(t, l.dir, name, args...)+".pub")
		l.names[hostkey.Fingerprint(sshkeys.Parse(t, keys[name]))] = name
	}
	rsa := sshkeys.Keygen(t, l.dir, "rsa_host", "-t", "rsa", "-b", "2048")
	l.a = l.start(t, "a", map[string]string{"root": keys["k1"] + "\n" + keys["k3"], l.bob: keys["k2"]}, "HostKey "+rsa)
	l.b = l.start(t, "b", map[string]string{"root": keys["k2"], l.bob: keys["k1"]})
	known := fmt.Sprintf("[127.0.0.1]:%[1]d,[localhost]:%[1]d %[3]s\n[127.0.0.1]:%[1]d %[4]s\n[127.0.0.1]:%[2]d,[localhost]:%[2]d,server-b %[5]s\n",
		l.a.Port, l.b.Port, l.a.HostPublicKey, sshkeys.PublicLine(t, rsa+".pub"), l.b.HostPublicKey)
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "known_hosts"), []byte(known), 0o600))
	t.Setenv("GB_TEST_KEYS", l.dir)
	return l
}

func (l *configLab) start(t *testing.T, name string, keys map[string]string, options ...string) *sshd.Server {
	t.Helper()
	for user, lines := range keys {
		require.NoError(t, os.WriteFile(filepath.Join(l.dir, name+"-"+user), []byte(lines+"\n"), 0o644))
	}
	return sshd.Start(t, sshd.Config{Options: append(options, "LogLevel DEBUG1", "AuthorizedKeysFile "+filepath.Join(l.dir, name+"-%u"))})
}

func (l *configLab) fill(text, caseDir string) string {
	return strings.NewReplacer("{A}", strconv.Itoa(l.a.Port), "{B}", strconv.Itoa(l.b.Port), "{BOB}", l.bob,
		"{DIR}", l.dir, "{CASE}", caseDir).Replace(text)
}

// prepare writes the case's files and returns its command line.
func (l *configLab) prepare(t *testing.T, c configCase) config.Options {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, l.fill(name, dir))
		require.NoError(t, os.WriteFile(path, []byte(l.fill(text, dir)), 0o600))
		return path
	}
	for name, text := range c.files {
		write(name, text+"\n")
	}
	o := config.To(l.fill(c.o.Destination, dir), "-F", write("config", c.text+"\n"+configTail))
	words := slices.Clone(c.o.Words)
	for i := range words {
		words[i] = l.fill(words[i], dir)
	}
	o.Words = append(o.Words[:2], words...)
	return o
}

var (
	logConnection = regexp.MustCompile(`(?m)^Connection from \S+ port (\d+) on`)
	logNobody     = regexp.MustCompile(`(?m)^Invalid user (\S+) from`)
	logHostKey    = regexp.MustCompile(`kex: host key algorithm: (?:ssh-)?(\S+)`)
	logAttempt    = regexp.MustCompile(`(Accepted|Failed) publickey for (?:invalid user )?(\S+) from .* ssh2: \S+ (SHA256:\S+)`)
)

// record runs f and returns what it did to the servers, once they have logged all of it.
func (l *configLab) record(t *testing.T, f func() bool) string {
	t.Helper()
	var parts []string
	from := map[*sshd.Server]int{l.a: len(l.a.Log()), l.b: len(l.b.Log())}
	in := f()
	for _, s := range []struct {
		name string
		*sshd.Server
	}{{"A", l.a}, {"B", l.b}} {
		var log string
		require.Eventually(t, func() bool {
			log = s.Log()[from[s.Server]:]
			return connectionsOver(log)
		}, 20*time.Second, 10*time.Millisecond, "%s", log)
		parts = append(parts, l.summary(s.name, log)...)
	}
	return strings.Join(append(parts, map[bool]string{true: "in", false: "out"}[in]), "; ")
}

// connectionsOver reports whether each connection that began has logged in or ended.
func connectionsOver(log string) bool {
	for _, m := range logConnection.FindAllStringSubmatch(log, -1) {
		end := regexp.MustCompile(`(?m)^(Accepted publickey for|Disconnected from|Connection closed by|Connection reset by|Unable to negotiate with|Disconnecting).* port ` + m[1] + `\b`)
		if !end.MatchString(log) {
			return false
		}
	}
	return true
}

// summary is one part per connection.
func (l *configLab) summary(server, log string) (parts []string) {
	starts := logConnection.FindAllStringIndex(log, -1)
	for i, start := range starts {
		end := len(log)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		part := server
		section := log[start[0]:end]
		if m := logHostKey.FindStringSubmatch(section); m != nil && m[1] != "(no" {
			part += " " + m[1]
		}
		if m := logNobody.FindStringSubmatch(section); m != nil {
			part += " ?" + m[1]
		}
		for _, m := range logAttempt.FindAllStringSubmatch(section, -1) {
			sign := map[string]string{"Accepted": "+", "Failed": "-"}[m[1]]
			part += " " + sign + strings.ReplaceAll(m[2], l.bob, "bob") + ":" + l.names[m[3]]
		}
		parts = append(parts, part)
	}
	return parts
}

func TestWhatWeConnectToIsWhatOpenSSHDoes(t *testing.T) {
	if os.Geteuid() != 0 {
		env.Missing(t, "not root: the servers cannot let two accounts in")
	}
	l := newConfigLab(t)
	for _, c := range configCases {
		t.Run(c.name, func(t *testing.T) {
			o := l.prepare(t, c)
			openssh := l.record(t, func() bool {
				args := append(o.Arguments()[1:], "true") // without -G
				return exec.Command(env.Tool(t, "ssh"), args...).Run() == nil
			})
			ours := l.record(t, func() bool {
				resolved, err := config.Resolve(t.Context(), o)
				if err != nil {
					return false
				}
				client, err := Dial(dialContext(t), resolved, DialOptions{Log: env.QuietLog()})
				if err != nil {
					return false
				}
				require.NoError(t, client.Close())
				return client.Wait() == nil
			})
			require.Equal(t, c.want, openssh, "OpenSSH")
			require.Equal(t, openssh, ours, "we")
		})
	}
}
