package detached

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/private"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/usertext"
)

// places are a directory of the user's, with bin, and one like /tmp.
type places struct{ own, shared string }

func newPlaces(t *testing.T) places {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing on Windows")
	}
	y := places{env.ShortDir(t), env.ShortDir(t)}
	require.NoError(t, os.Mkdir(filepath.Join(y.own, "bin"), 0o700))
	require.NoError(t, os.Chmod(y.shared, 0o777|os.ModeSticky))
	return y
}

// only is what environmentFor makes of one variable; "-" where it is left
// out.
func only(t *testing.T, here, entry string) string {
	t.Helper()
	environment, leftOut, err := environmentFor([]string{entry}, here, "/private")
	require.NoError(t, err)
	require.Equal(t, "PWD=/private", environment[len(environment)-1])
	name, _, _ := strings.Cut(entry, "=")
	if len(environment) == 1 {
		if !isHere(name) {
			require.Equal(t, []string{name}, leftOut)
		}
		return "-"
	}
	require.Empty(t, leftOut)
	return strings.TrimPrefix(environment[0], name+"=")
}

func TestEnvironment(t *testing.T) {
	y := newPlaces(t)
	for entry, want := range map[string]string{
		"PATH=./bin:/usr/bin":                        y.own + "/bin:/usr/bin",
		"PATH=bin::/usr/bin:":                        y.own + "/bin:/usr/bin",
		"PATH=" + y.shared + ":/usr/bin":             "/usr/bin",
		"PATH=" + y.shared + "/bin:/usr/bin":         "/usr/bin",
		"PATH=:":                                     "-",
		"LD_LIBRARY_PATH=/opt/x/lib:":                "/opt/x/lib",
		"LD_LIBRARY_PATH=$ORIGIN/../lib:.":           "$ORIGIN/../lib:" + y.own,
		"LD_PRELOAD=libx.so ./bin/liby.so":           "libx.so:" + y.own + "/bin/liby.so",
		"LD_PRELOAD=" + y.shared + "/libx.so":        "-",
		"PYTHONPATH=src:" + y.own:                    y.own + "/src:" + y.own,
		"GNUPGHOME=gnupg":                            y.own + "/gnupg",
		"GNUPGHOME=/home/me/.gnupg/":                 "/home/me/.gnupg/",
		"GNUPGHOME=":                                 "",
		"HOME=../" + filepath.Base(y.own):            y.own,
		"XDG_RUNTIME_DIR=run":                        "-",
		"XDG_DATA_DIRS=/usr/share:share":             "/usr/share",
		"XDG_CURRENT_DESKTOP=GNOME":                  "GNOME",
		"SSH_AUTH_SOCK=agent":                        y.own + "/agent",
		"SSH_ASKPASS=ksshaskpass":                    "ksshaskpass",
		"SSH_ASKPASS=bin/ask":                        y.own + "/bin/ask",
		"AWS_PROFILE=work":                           "work",
		"KUBECONFIG=../a:./b:/c":                     filepath.Dir(y.own) + "/a:" + y.own + "/b:/c",
		"DOCKER_SOCK=tcp://localhost:2375/../x":      "tcp://localhost:2375/../x",
		"HTTPS_PROXY=http://proxy:3128":              "http://proxy:3128",
		"PERL5OPT=-I../lib":                          "-",
		"LUA_INIT=/a/?;../?.lua":                     "-",
		"NOTE=wait... a/../b":                        "wait... a/../b",
		"LS_COLORS=*.tar=01;31:*.zip=01":             "*.tar=01;31:*.zip=01",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/b,": "unix:path=/run/b,",
		"PWD=" + y.own:                               "-",
		"OLDPWD=/":                                   "-",
		"EMPTY=":                                     "",
		"TERM=xterm":                                 "xterm",
	} {
		require.Equal(t, want, only(t, y.own, entry), entry)
	}
	// A directory that is anybody's, and one that is not known.
	require.Equal(t, "/usr/bin", only(t, y.shared, "PATH=./bin:bin:.:/usr/bin"))
	require.Equal(t, "/usr/bin", only(t, "", "PATH=./bin:bin:.:/usr/bin"))
	require.Equal(t, "-", only(t, "", "SSH_AUTH_SOCK=agent"))
	for _, here := range []string{y.shared, ""} {
		_, _, err := environmentFor([]string{"GNUPGHOME=gnupg"}, here, "/private")
		var refused *environmentError
		require.ErrorAs(t, err, &refused)
		require.Contains(t, err.Error(), `GNUPGHOME is "gnupg"`)
		require.NotEmpty(t, usertext.Hint(err))
	}
}

// Whatever a variable holds: no path that is known to be one is relative, nothing
// leads out of the private directory, no program or library comes from where
// anybody can put it, and what is absolute and private stays as it is.
func TestEnvironmentIsFreeOfHere(t *testing.T) {
	y := newPlaces(t)
	names := []string{
		"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "DYLD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GCONV_PATH", "PYTHONPATH",
		"PERL5LIB", "GNUPGHOME", "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SHELL",
		"GPG_TTY", "BASH_ENV", "KRB5_CLIENT_KTNAME", "SSL_CERT_FILE", "KUBECONFIG", "LESSOPEN", "ANYTHING",
	}
	pieces := []string{"", ".", "..", "/", "/", ":", ":", " ", "bin", "lib.so", "x", "~", "$HOME", "-I", "=", ";", "...", y.own, y.own + "/bin", y.shared}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		var value strings.Builder
		for range random.IntN(6) {
			value.WriteString(pieces[random.IntN(len(pieces))])
		}
		name, here := names[random.IntN(len(names))], []string{y.own, y.shared, ""}[random.IntN(3)]
		environment, _, err := environmentFor([]string{name + "=" + value.String()}, here, "/private")
		if err != nil {
			require.Equal(t, "GNUPGHOME", name)
			continue
		}
		for _, entry := range environment {
			requireFreeOfHere(t, entry, here+" "+name+"="+value.String())
		}
	}
	for _, name := range names {
		for _, value := range []string{y.own + "/bin", "/usr/bin"} {
			require.Equal(t, value, only(t, y.shared, name+"="+value))
		}
	}
}

// requireFreeOfHere checks a variable by what its readers do with it, and not by
// how it was made.
func requireFreeOfHere(t *testing.T, entry, from string) {
	t.Helper()
	name, value, _ := strings.Cut(entry, "=")
	if value == "" || name == "PWD" {
		return
	}
	elements := strings.Split(value, ":")
	switch name {
	case "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES":
		elements = strings.FieldsFunc(value, func(r rune) bool { return r == ':' || r == ' ' })
		fallthrough
	case "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "GCONV_PATH", "PYTHONPATH", "PERL5LIB":
		for _, element := range elements {
			isName := strings.Contains(name, "LD_") && !strings.Contains(element, "/") && !strings.HasSuffix(name, "PATH")
			if isName || strings.HasPrefix(element, "$") {
				continue
			}
			require.True(t, filepath.IsAbs(element), "%s became %s", from, entry)
			require.NoError(t, private.CheckPlace(element), "%s became %s", from, entry)
		}
	case "GNUPGHOME":
		require.True(t, filepath.IsAbs(value), "%s became %s", from, entry)
		require.NoError(t, private.CheckPlace(value), "%s became %s", from, entry)
		return
	case "HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "SSH_AUTH_SOCK", "GPG_TTY", "BASH_ENV", "SSL_CERT_FILE":
		require.True(t, filepath.IsAbs(value), "%s became %s", from, entry)
		return
	case "SSH_ASKPASS", "SHELL":
		require.True(t, filepath.IsAbs(value) || !strings.Contains(value, "/"), "%s became %s", from, entry)
	}
	for _, element := range elements {
		if !filepath.IsAbs(element) && !strings.HasPrefix(element, "$") {
			for _, word := range strings.FieldsFunc(element, func(r rune) bool { return strings.ContainsRune(" ;=", r) }) {
				word = strings.TrimPrefix(word, "-I")
				require.False(t, word == ".." || strings.HasPrefix(word, "../"), "%s became %s", from, entry)
			}
		}
	}
}
