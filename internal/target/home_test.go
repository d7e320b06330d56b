//go:build unix

package target

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/sshfwd/config"
)

// homeName returns the name of the home with this GNUPGHOME.
func homeName(t *testing.T, gnupgHome string) string {
	t.Helper()
	t.Setenv("GNUPGHOME", gnupgHome)
	home := AskHome(t.Context())
	defer home.Stop()
	return home.Name()
}

// The GnuPG home is part of a target's ID, however it is written.
func TestTargetOfOneHome(t *testing.T) {
	env.Tool(t, "gpgconf")
	dir := env.ShortDir(t)
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	usual := filepath.Join(dir, ".gnupg")
	for _, same := range []string{"", usual, usual + "/", usual + "//", ".gnupg", filepath.Dir(dir) + "/./" + filepath.Base(dir) + "//.gnupg/"} {
		require.Equal(t, usual, homeName(t, same), same)
		require.Equal(t, usual, filepath.Clean(usualHome()), same)
	}
	require.Equal(t, "/other", homeName(t, "/other"))
	resolved := &config.Config{Hostname: "dev", Port: 22, User: "me"}
	require.NotEqual(t, Of(resolved, Spec{}, "/a").ID, Of(resolved, Spec{}, "/b").ID)
}

// If gpgconf hangs, fails or is missing, that delays nobody for long, and changes no name.
func TestTargetWithoutGpgconf(t *testing.T) {
	for name, script := range map[string]string{
		"hangs":    "sleep 5 & wait",
		"fails":    "exit 1",
		"nonsense": "echo relative/",
		"missing":  "",
	} {
		t.Run(name, func(t *testing.T) {
			bin, path := t.TempDir(), os.Getenv("PATH")
			if script != "" {
				require.NoError(t, os.WriteFile(filepath.Join(bin, "gpgconf"), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
				bin += ":" + path
			}
			t.Setenv("PATH", bin)
			t.Setenv("GNUPGHOME", "/some/home/")
			start := time.Now()
			home := AskHome(t.Context())
			defer home.Stop()
			require.Equal(t, "/some/home", home.Name())
			require.Less(t, time.Since(start), 5*homeTimeout)
		})
	}
}
