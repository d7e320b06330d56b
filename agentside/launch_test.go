//go:build unix

package agentside

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// The usual home is made when the agent cannot be started for the lack of it; nothing
// else is, and no home that GNUPGHOME names.
func TestLaunchMakesTheUsualHome(t *testing.T) {
	for name, c := range map[string]struct {
		env    []string
		launch string // what gpgconf does for --launch
		before bool   // the home is there
		made   bool
		want   string // of the error
		tries  int
		alien  bool // the directory above is another user's
	}{
		"no home":            {launch: `[ -d "$home" ]`, made: true, tries: 2},
		"a home":             {launch: "exit 3", before: true, made: true, want: "exit status 3", tries: 1},
		"no home, no matter": {launch: "exit 0", tries: 1},
		"still not":          {launch: "exit 3", made: true, want: "exit status 3", tries: 2},
		"GNUPGHOME":          {env: []string{"GNUPGHOME=/x"}, launch: "exit 3", want: "which does not exist", tries: 1},
		"no directory above": {launch: "rmdir $above; exit 3", want: "no such file", tries: 1},
		"another's HOME":     {launch: `[ -d "$home" ]`, want: "another user's directory", tries: 1, alien: true},
	} {
		above := filepath.Join(env.ShortDir(t), "above")
		home, log := filepath.Join(above, "home"), filepath.Join(env.ShortDir(t), "log")
		require.NoError(t, os.Mkdir(above, 0o700))
		if c.alien {
			if os.Geteuid() != 0 {
				above, home = "/", "/gpg-bridge-test-home"
			} else {
				require.NoError(t, os.Chown(above, 4711, 4711))
			}
		}
		if c.before {
			require.NoError(t, os.Mkdir(home, 0o700))
		}
		gpgconf := fakeGpgconf(t, "home="+home+" above="+above+"\ncase $1 in\n--launch) printf . >>"+log+"; "+c.launch+";;\n*) echo $home;;\nesac")
		l := &Locator{Gpgconf: gpgconf, Env: append(c.env, "PATH="+os.Getenv("PATH"))}
		err := l.launch(t.Context())
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
		info, missing := os.Stat(home)
		require.Equal(t, c.made, missing == nil, name)
		if c.made {
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm(), name)
		}
		tries, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Len(t, string(tries), c.tries, name)
	}
}
