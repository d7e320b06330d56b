package prepare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
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
			r := newRemote(t, sshd.AccountConfig{Shell: shell}, sshd.Config{})
			r.WriteFile(t, rc, []byte("echo welcome\necho ready /etc/passwd\nprintf 'no line feed'\n"), 0o600)
			h, key := home(t)
			p := r.prepare(t, prepare.Options{
				Evict:  true,
				Wanted: []prepare.Key{{Fingerprint: key.Fingerprint}},
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
			program := env.Tool(t, shell)
			path := linksWithout(t, "sh")
			require.NoError(t, os.Symlink(program, filepath.Join(path, "sh")))
			r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv PATH=" + path + " MOTD_SHOWN=pam"}})
			r.startAgent(t)
			h, key := home(t)
			var motd []string
			p := r.prepare(t, prepare.Options{
				MOTD:   func(lines []string) { motd = lines },
				Evict:  true,
				Wanted: []prepare.Key{{Fingerprint: key.Fingerprint, OwnerTrust: 6}},
				Export: exporter(h, nil),
			})
			require.Equal(t, messageOfTheDay(), motd)
			require.Equal(t, []string{key.Fingerprint}, p.Missing)
			require.Contains(t, r.Run0(t, "gpg --no-autostart --batch --export-ownertrust"), key.Fingerprint+":6:")
		})
	}
}

// messageOfTheDay is what pam_motd shows as Debian configures it: "noupdate" is an
// option that names no file.
func messageOfTheDay() (lines []string) {
	config, _ := os.ReadFile("/etc/pam.d/sshd")
	for _, file := range []struct{ asked, path string }{
		{"motd=/run/motd.dynamic", "/run/motd.dynamic"}, {"pam_motd.so noupdate", "/etc/motd"},
	} {
		text, err := os.ReadFile(file.path)
		if err == nil && strings.Contains(string(config), file.asked) && len(text) > 0 {
			lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
		}
	}
	return lines
}

// TestPrepareLaunchesKeyboxd: where gpg uses it, gpg must find it running.
func TestPrepareLaunchesKeyboxd(t *testing.T) {
	for conf, want := range map[string]bool{"use-keyboxd\n": true, "# use-keyboxd\nno-autostart\n": false} {
		path := linksWithout(t, "gpgconf")
		r := newRemote(t, sshd.AccountConfig{}, sshd.Config{Options: []string{"SetEnv PATH=" + path}})
		r.WriteFile(t, filepath.Join(path, "gpgconf"),
			[]byte("#!/bin/sh\necho \"$@\" >>~/asked\nexec /usr/bin/gpgconf \"$@\"\n"), 0o755)
		r.WriteFile(t, ".gnupg/common.conf", []byte(conf), 0o600)
		p, err := prepare.Prepare(t.Context(), r, prepare.Options{
			Evict: true, Wanted: []prepare.Key{{Fingerprint: strings.Repeat("A", 40)}},
		})
		require.NoError(t, err)
		_, err = p.Wait()
		require.Error(t, err, "nobody has the key")
		asked := string(r.ReadFile(t, "asked"))
		require.Contains(t, asked, "--list-dirs agent-socket")
		require.Equal(t, want, strings.Contains(asked, "--launch keyboxd"), asked)
	}
}

func TestPrepareAccountWithoutShell(t *testing.T) {
	const control = "\x1b[31mred"
	for name, test := range map[string]struct {
		account sshd.AccountConfig
		config  sshd.Config
		says    string
	}{
		"nologin":        {account: sshd.AccountConfig{Shell: "nologin"}, says: "This account is currently not available."},
		"forced command": {config: sshd.Config{KeyOptions: `command="echo go away"`}, says: "go away"},
		"control characters": {
			config: sshd.Config{KeyOptions: `command="printf '\033[31mred\n'"`}, says: control,
		},
		"on stderr": {config: sshd.Config{KeyOptions: `command="echo go away >&2; exit 3"`}, says: "go away"},
		"silent":    {config: sshd.Config{KeyOptions: `command="exit 0"`}},
		"sftp":      {config: sshd.Config{Options: []string{"ForceCommand internal-sftp"}}, says: "This service allows sftp connections only."},
		"repeats its command": {
			config: sshd.Config{KeyOptions: `command="expr \"unknown: $SSH_ORIGINAL_COMMAND\" : '\(.\{14\}\)' >&2; exit 128"`}, says: "unknown: sh -c",
		},
		"repeats its input": {config: sshd.Config{KeyOptions: `command="cat"`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t, test.account, test.config)
			_, err := prepare.Prepare(t.Context(), r, prepare.Options{Evict: true})
			var noShell *prepare.NoShellError
			require.ErrorAs(t, err, &noShell)
			require.Equal(t, test.says, noShell.FirstLine)
			require.Contains(t, noShell.Hint(), "--remote-socket")
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), "sh -c", "it is our script")
		})
	}
}

func TestPrepareWithoutGPG(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{NoGPG: true}, sshd.Config{})
	_, err := prepare.Prepare(t.Context(), r, prepare.Options{Evict: true})
	var noGPG *prepare.NoGPGError
	require.ErrorAs(t, err, &noGPG)
	require.Equal(t, "gpg", noGPG.Program)
	require.Contains(t, noGPG.Hint(), "--remote-socket")
	require.NoDirExists(t, filepath.Join(r.Home, ".gnupg"))
}

func TestExplainRefusalWithoutShell(t *testing.T) {
	r := newRemote(t, sshd.AccountConfig{Shell: "nologin"}, sshd.Config{})
	err := prepare.ExplainRefusal(t.Context(), r, r.socket())
	var refused *prepare.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, prepare.RefusedUnknown, refused.Refusal)
	require.Error(t, refused.Err)
	require.NotEmpty(t, refused.Hint())
}
