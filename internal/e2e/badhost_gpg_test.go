//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
)

// shims are programs of the host's in the place of GnuPG's.
type shims struct {
	dir string
}

// withShims is a scene whose host looks into a directory of ours first. options
// are its sshd's.
func withShims(t *testing.T, options ...string) (*scene, shims) {
	t.Helper()
	dir := env.ShortDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	options = append(options, "SetEnv PATH="+dir+":/usr/local/bin:/usr/bin:/bin")
	return stage{sshd: sshd.Config{Options: options}}.set(t), shims{dir}
}

// put replaces the programs by these, each by its name a shell script, in which
// "$real" is the directory of the real ones.
func (s shims) put(t *testing.T, programs map[string]string) {
	t.Helper()
	real := filepath.Dir(env.Tool(t, "gpgconf"))
	for _, name := range []string{"gpg", "gpgconf"} {
		_ = os.Remove(filepath.Join(s.dir, name))
		if body, ok := programs[name]; ok {
			require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/bin/sh\nreal="+real+"\n"+body+"\n"), 0o755))
		}
	}
}

const escapes = `\033]0;owned\007\033[31m\302\23331m\23331m\r\b\342\200\256%%s`

// GnuPG on the host may be anything: what it says is not believed, not executed,
// and not shown raw, and the user's command runs all the same.
func TestNonsenseInPlaceOfGPG(t *testing.T) {
	const realGPG = `exec "$real/gpg" "$@"`
	const realConf = `exec "$real/gpgconf" "$@"`
	s, host := withShims(t)
	for name, programs := range map[string]map[string]string{
		"gpgconf says nothing":  {"gpgconf": "exit 0"},
		"gpgconf fails":         {"gpgconf": "echo no >&2; exit 2"},
		"gpgconf dies":          {"gpgconf": "kill -9 $$"},
		"gpgconf says escapes":  {"gpgconf": "printf '" + escapes + "\\n'"},
		"gpgconf says lines":    {"gpgconf": "printf '/tmp/a\\n/tmp/b\\n\\n'"},
		"gpgconf says a lot":    {"gpgconf": "head -c 5000000 /dev/urandom"},
		"gpgconf says 4 KiB":    {"gpgconf": "printf '/%4096s\\n' x | tr ' ' x"},
		"gpgconf says relative": {"gpgconf": "echo ../../../etc/passwd"},
		"gpgconf says a device": {"gpgconf": "echo /dev/null"},
		"gpgconf says /":        {"gpgconf": "echo /"},
		"gpg dies":              {"gpg": "kill -9 $$", "gpgconf": realConf},
		"gpg says escapes":      {"gpg": "printf '" + escapes + "\\n'; printf 'gpg: " + escapes + "\\n' >&2", "gpgconf": realConf},
		"gpg says a lot":        {"gpg": "head -c 5000000 /dev/urandom; head -c 5000000 /dev/urandom >&2", "gpgconf": realConf},
		"gpg imports nothing":   {"gpg": `case "$*" in *--import*) cat >/dev/null; i=0; while [ $i -lt 3000 ]; do printf 'gpg: ` + escapes + `\n'; i=$((i+1)); done;; *) ` + realGPG + `;; esac`, "gpgconf": realConf},
		"gpg lies of imports":   {"gpg": `case "$*" in *--import*) printf '[GNUPG:] IMPORT_OK 1 %s\n' x ` + strings.Repeat("A", 40) + `;; *) ` + realGPG + `;; esac`, "gpgconf": realConf},
	} {
		t.Run(name, func(t *testing.T) {
			host.put(t, programs)
			r := s.run(t, "host", "echo on the host; exit 7")
			require.Equal(t, 7, r.code, "%q", r.stderr)
			require.Equal(t, "on the host\n", r.stdout)
			requireClean(t, r.stderr)
			require.Less(t, len(r.stderr), 4000)
			messages := r.messages(t)
			require.NotEmpty(t, messages)
			require.LessOrEqual(t, len(messages), 2, "%q", r.stderr)
			require.Contains(t, r.stderr, "gpg-bridge: warning: ")
		})
	}
}

// A path may have any name that a socket can have. It is only a name, to the
// host's shell, to ours and to the terminal.
func TestSocketOfAnyName(t *testing.T) {
	s, host := withShims(t)
	file := filepath.Join(host.dir, "path")
	host.put(t, map[string]string{
		"gpgconf": `case "$*" in *agent-socket*) cat ` + file + `;; *) exec "$real/gpgconf" "$@";; esac`,
	})
	s.host.Run(t, "mkdir -m 700 g")
	for name, socket := range map[string]string{
		"blanks":       "  a  b ",
		"semicolons":   "a;touch CANARY;b",
		"substitution": "$(touch CANARY)`touch CANARY`${HOME}",
		"quotes":       `'"'"'a"b\\\'`,
		"glob":         "*?[a]!~",
		"option":       "-rf",
		"ampersand":    "a&touch CANARY&",
		"bidi and C1":  "a\u202eb\u009b31m",
		"not UTF-8":    "a\xff\xfe",
		"comment":      "# a",
		"percent":      "%h%u%%s%n",
	} {
		t.Run(name, func(t *testing.T) {
			path := s.host.Path("g/" + socket)
			require.NoError(t, os.WriteFile(file, []byte(path+"\n"), 0o644))
			p := s.bridge(t)
			require.Equal(t, "OK\n", dial(t, path).ask(t, "GETINFO restricted\n"))
			p.signal(t, syscall.SIGTERM)
			r := p.wait(t)
			require.Zero(t, r.code, "%q", r.stderr)
			requireClean(t, r.stderr)
			require.Len(t, r.messages(t), 1)
			left, err := os.ReadDir(s.host.Path("g"))
			require.NoError(t, err)
			require.Empty(t, left, "the socket was removed, and nothing else made")
			for _, dir := range []string{s.host.Home, "."} {
				require.NoFileExists(t, filepath.Join(dir, "CANARY"))
			}
		})
	}
}
