package remoteside_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/sshdtest"
	"gpg-bridge/internal/testenv"
	"gpg-bridge/remoteside"
)

// TestPrepareLoginShells: every shell, with an rc file that prints, in part
// without a line feed and in part on stderr.
func TestPrepareLoginShells(t *testing.T) {
	for shell, rc := range map[string]string{
		"bash": ".bashrc",
		"dash": ".profile",
		"fish": ".config/fish/config.fish",
		"tcsh": ".tcshrc",
	} {
		t.Run(shell, func(t *testing.T) {
			r := newRemote(t, sshdtest.AccountConfig{Shell: shell}, sshdtest.Config{})
			r.WriteFile(t, rc, []byte("echo welcome\necho ready /etc/passwd\nprintf 'no line feed'\n"), 0o600)
			h, key := home(t)
			p := r.prepare(t, remoteside.PrepareOptions{
				Evict:  true,
				Wanted: []remoteside.Key{{Fingerprint: key.Fingerprint}},
				Export: exporter(h, nil),
			})
			require.Equal(t, r.socket(), p.Socket)
			require.Equal(t, []string{key.Fingerprint}, p.Missing)
			require.Contains(t, r.Run0(t, "gpg --no-autostart --batch --with-colons -k"), key.Fingerprint)
		})
	}
}

// TestPrepareOtherShells: what is called sh differs.
func TestPrepareOtherShells(t *testing.T) {
	for _, shell := range []string{"bash", "dash", "busybox", "ksh", "mksh", "yash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			program := testenv.Tool(t, shell)
			path := linksWithout(t, "sh")
			require.NoError(t, os.Symlink(program, filepath.Join(path, "sh")))
			r := newRemote(t, sshdtest.AccountConfig{}, sshdtest.Config{Options: []string{"SetEnv PATH=" + path}})
			r.startAgent(t)
			h, key := home(t)
			p := r.prepare(t, remoteside.PrepareOptions{
				Evict:  true,
				Wanted: []remoteside.Key{{Fingerprint: key.Fingerprint, OwnerTrust: 6}},
				Export: exporter(h, nil),
			})
			require.Equal(t, []string{key.Fingerprint}, p.Missing)
			require.Contains(t, r.Run0(t, "gpg --no-autostart --batch --export-ownertrust"), key.Fingerprint+":6:")
		})
	}
}

// TestPrepareLaunchesKeyboxd: where gpg uses it, gpg must find it running.
func TestPrepareLaunchesKeyboxd(t *testing.T) {
	for conf, want := range map[string]bool{"use-keyboxd\n": true, "# use-keyboxd\nno-autostart\n": false} {
		path := linksWithout(t, "gpgconf")
		r := newRemote(t, sshdtest.AccountConfig{}, sshdtest.Config{Options: []string{"SetEnv PATH=" + path}})
		r.WriteFile(t, filepath.Join(path, "gpgconf"),
			[]byte("#!/bin/sh\necho \"$@\" >>~/asked\nexec /usr/bin/gpgconf \"$@\"\n"), 0o755)
		r.WriteFile(t, ".gnupg/common.conf", []byte(conf), 0o600)
		r.prepare(t, remoteside.PrepareOptions{Evict: true})
		asked := string(r.ReadFile(t, "asked"))
		require.Contains(t, asked, "--list-dirs agent-socket")
		require.Equal(t, want, strings.Contains(asked, "--launch keyboxd"), asked)
	}
}

func TestPrepareAccountWithoutShell(t *testing.T) {
	const control = "\x1b[31mred"
	for name, test := range map[string]struct {
		account sshdtest.AccountConfig
		config  sshdtest.Config
		says    string
	}{
		"nologin":        {account: sshdtest.AccountConfig{Shell: "nologin"}, says: "This account is currently not available."},
		"forced command": {config: sshdtest.Config{KeyOptions: `command="echo go away"`}, says: "go away"},
		"control characters": {
			config: sshdtest.Config{KeyOptions: `command="printf '\033[31mred\n'"`}, says: control,
		},
		"on stderr":         {config: sshdtest.Config{KeyOptions: `command="echo go away >&2; exit 3"`}, says: "go away"},
		"silent":            {config: sshdtest.Config{KeyOptions: `command="exit 0"`}},
		"sftp":              {config: sshdtest.Config{Options: []string{"ForceCommand internal-sftp"}}, says: "This service allows sftp connections only."},
		"repeats its input": {config: sshdtest.Config{KeyOptions: `command="cat"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, test.account, test.config)
			_, err := remoteside.Prepare(t.Context(), r, remoteside.PrepareOptions{Evict: true})
			var noShell *remoteside.NoShellError
			require.ErrorAs(t, err, &noShell)
			require.Equal(t, test.says, noShell.FirstLine)
			require.Contains(t, noShell.Hint(), "--remote-socket")
			require.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func TestPrepareWithoutGPG(t *testing.T) {
	r := newRemote(t, sshdtest.AccountConfig{NoGPG: true}, sshdtest.Config{})
	_, err := remoteside.Prepare(t.Context(), r, remoteside.PrepareOptions{Evict: true})
	var noGPG *remoteside.NoGPGError
	require.ErrorAs(t, err, &noGPG)
	require.Equal(t, "gpg", noGPG.Program)
	require.Contains(t, noGPG.Hint(), "--remote-socket")
	require.NoDirExists(t, filepath.Join(r.Home, ".gnupg"))
}

func TestExplainRefusalWithoutShell(t *testing.T) {
	r := newRemote(t, sshdtest.AccountConfig{Shell: "nologin"}, sshdtest.Config{})
	err := remoteside.ExplainRefusal(t.Context(), r, r.socket())
	var refused *remoteside.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, remoteside.RefusedUnknown, refused.Refusal)
	require.Error(t, refused.Err)
	require.NotEmpty(t, refused.Hint())
}
