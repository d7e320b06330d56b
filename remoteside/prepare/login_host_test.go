package prepare_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

// TestLoginHome: every shell, with a home that only its login files set, and whose
// name has all that is special to the script.
func TestLoginHome(t *testing.T) {
	const name = "x d~g?Q'Z"
	export := `export GNUPGHOME="$HOME/` + name + `"` + "\n"
	for shell, rc := range map[string]struct{ file, text string }{
		"bash": {".bash_profile", export},
		"dash": {".profile", export},
		"zsh":  {".zprofile", export},
		"ksh":  {".profile", export},
		"mksh": {".profile", export},
		"yash": {".yash_profile", export},
		"fish": {".config/fish/config.fish", "set -x GNUPGHOME \"$HOME/" + name + "\"\n"},
		"tcsh": {".login", `setenv GNUPGHOME "$HOME/` + name + "\"\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, sshd.AccountConfig{Shell: shell}, sshd.Config{})
			found, _ := prepare.LoginHome(t.Context(), r)
			require.Empty(t, found, "nothing is set")

			// Much is said, nothing is read, and what is started stays.
			text := "echo welcome; cat; printf 'no line feed'; sleep 600 &\n" + rc.text
			if shell == "fish" { // it has one file for all
				text = "if status is-login\n" + text + "end\n"
			}
			r.WriteFile(t, rc.file, []byte(text), 0o600)
			require.Eventually(t, func() bool { // a busy machine may take more than its 5 seconds
				began := time.Now()
				found, _ = prepare.LoginHome(t.Context(), r)
				return found != "" && time.Since(began) < 14*time.Second // what was started is not waited for
			}, 3*patience, 10*time.Millisecond)
			require.Equal(t, r.Path(name), found)

			r.Mkdir(t, name)
			laptop, key := home(t)
			p := r.prepare(t, prepare.Options{
				Home: found, Wanted: []prepare.Key{{Fingerprint: key.Fingerprint}}, Export: exporter(laptop, nil),
			})
			require.Equal(t, strings.TrimSpace(r.as(t, found, "gpgconf --list-dirs agent-socket")), p.Socket)
			require.Contains(t, r.as(t, found, "gpg --no-autostart --batch --with-colons -k"), key.Fingerprint)
			require.NoDirExists(t, r.Path(".gnupg"))
		})
	}
}

// as runs a script with this GNUPGHOME.
func (r *remote) as(t *testing.T, home, script string) string {
	t.Helper()
	cmd := r.Command("/bin/sh", "-c", script)
	cmd.Env = append(cmd.Env, "GNUPGHOME="+home)
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// TestLoginHomeIsBounded: start-up files that hang are ended, with what they run.
func TestLoginHomeIsBounded(t *testing.T) {
	t.Parallel()
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	r.WriteFile(t, ".profile", []byte("trap '' TERM HUP PIPE\n(sh -c 'sleep 601; :') | cat\n"), 0o600)
	found, err := prepare.LoginHome(t.Context(), r)
	require.ErrorAs(t, err, new(*prepare.LoginTimeoutError))
	require.Empty(t, found)
	require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond)
}

// TestLoginHomeLetsStartUpFilesEnd: those that take too long can remove their lock,
// without which the user's own log-in would hang. What they answer after that does
// not count.
func TestLoginHomeLetsStartUpFilesEnd(t *testing.T) {
	const locked = `trap 'rmdir ~/start.lock' EXIT HUP TERM INT
until mkdir ~/start.lock; do sleep 1; done
touch ~/began
export GNUPGHOME=~/half
sleep 603
`
	for shell, file := range map[string]string{"zsh": ".zprofile", "bash": ".bash_profile"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t, sshd.AccountConfig{Shell: shell}, sshd.Config{})
			r.WriteFile(t, file, []byte(locked), 0o600)
			found, err := prepare.LoginHome(t.Context(), r)
			require.ErrorAs(t, err, new(*prepare.LoginTimeoutError))
			require.Empty(t, found)
			require.FileExists(t, r.Path("began"))
			require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond)
			require.NoDirExists(t, r.Path("start.lock"))
		})
	}
}

// TestLoginHomeIsBoundedWithoutAReader: when the connection has ended, too.
func TestLoginHomeIsBoundedWithoutAReader(t *testing.T) {
	t.Parallel()
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	r.WriteFile(t, ".profile", []byte("echo >~/began\nsleep 604\n"), 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := prepare.LoginHome(ctx, r)
		ended <- err
	}()
	require.Eventually(t, func() bool {
		_, err := os.Stat(r.Path("began"))
		return err == nil
	}, patience, 10*time.Millisecond)
	cancel()
	err := <-ended
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(r.Processes()) == 0 }, patience, 10*time.Millisecond)
}

// TestPrepareOfAHomeThatIsNotTheAccounts: it may have been, when it was asked for.
func TestPrepareOfAHomeThatIsNotTheAccounts(t *testing.T) {
	t.Parallel()
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
	for _, home := range []string{r.Path("gone"), "/var"} {
		_, err := prepare.Prepare(t.Context(), r, prepare.Options{Home: home})
		var none *prepare.HomeError
		require.ErrorAs(t, err, &none)
		require.Equal(t, home, none.Home)
	}
	require.NoDirExists(t, r.Path("gone"))
}

func TestLoginHomeOfAnOddAnswer(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]string{
		"relative": "export GNUPGHOME=gnupg\n",
		"escape":   "export GNUPGHOME=$(printf '/x\\033[31m')\n",
		"long":     "export GNUPGHOME=/" + strings.Repeat("x", 200) + "\n",
	} {
		r := newRemote(t, sshd.AccountConfig{}, sshd.Config{})
		r.WriteFile(t, ".profile", []byte(profile), 0o600)
		found, err := prepare.LoginHome(t.Context(), r)
		require.Error(t, err, name)
		require.Empty(t, found)
	}
}

// TestLoginHomeOfAnUnknownShell: nothing is run that nobody knows how to ask.
func TestLoginHomeOfAnUnknownShell(t *testing.T) {
	t.Parallel()
	r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv SHELL=/bin/true"}})
	r.WriteFile(t, ".profile", []byte("touch ran; export GNUPGHOME=/x\n"), 0o600)
	r.WriteFile(t, ".ssh/rc", []byte("exit\n"), 0o600)
	found, _ := prepare.LoginHome(t.Context(), r)
	require.Empty(t, found)
	require.NoFileExists(t, r.Path("ran"))
}
