package sshfwd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/sshfwd/config"
)

// A detached process refuses what depends on the current directory.
func TestDetachedConfig(t *testing.T) {
	for _, c := range []*config.Config{
		{}, {ProxyCommand: "nc %h %p"}, {ProxyCommand: "exec nc -x a/b %h"}, {ProxyCommand: "/opt/a/../nc"}, {ProxyCommand: "~/bin/nc"},
		{ProxyCommand: "$HOME/bin/nc"}, {ProxyCommand: `"$x"/nc`}, {IdentityFiles: []string{"/home/me/../key", "key"}},
		{UserKnownHostsFiles: []string{"/kh", "~/kh", os.DevNull}, IdentityAgent: "SSH_AUTH_SOCK"}, {GlobalKnownHostsFiles: []string{"__PROGRAMDATA__/ssh/kh"}},
	} {
		c.Detached = true
		require.NoError(t, checkSupported(c), "%+v", c)
	}
	for _, c := range []*config.Config{
		{ProxyCommand: "./nc"}, {ProxyCommand: "exec bin/nc"}, {ProxyCommand: "'../nc' %h"}, {ProxyCommand: "env ../nc"}, {ProxyCommand: `sh "a/../../x"`},
		{IdentityFiles: []string{"/key", "../key"}}, {CertificateFiles: []string{"a/../../c"}}, {IdentityAgent: "../agent"},
		{UserKnownHostsFiles: []string{"../kh"}}, {GlobalKnownHostsFiles: []string{".."}}, {RevokedHostKeys: []string{"/a", "../r"}},
		{UserKnownHostsFiles: []string{"/kh", "kh"}}, {GlobalKnownHostsFiles: []string{"./kh"}}, {RevokedHostKeys: []string{"r"}},
	} {
		require.NoError(t, checkSupported(c))
		c.Detached = true
		var refused *config.Error
		require.ErrorAs(t, checkSupported(c), &refused, "%+v", c)
		require.NotEmpty(t, refused.Hint())
		options, err := (&config.Config{ProxyJump: "gate", Detached: c.Detached}).JumpOptions()
		require.NoError(t, err)
		require.True(t, options.Detached, "a jump host is reached by the same process")
	}
}

// A detached process refuses a relative file of known hosts in ssh_config, whatever it
// finds where it runs, and even if it is not certain how many files the value names. A
// process that is not detached accepts it.
func TestDetachedKnownHosts(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, refused := range map[string]bool{
		"UserKnownHostsFile kh":                              true,
		"GlobalKnownHostsFile /kh kh":                        true,
		"RevokedHostKeys sub/kh":                             true,
		"UserKnownHostsFile k1 kx":                           true,
		"UserKnownHostsFile k1 kx\nInclude [!x]nothing":      true,
		"UserKnownHostsFile /k1 \"kx\"\nInclude [!x]nothing": true,
		"UserKnownHostsFile /k1 /kx\nInclude [!x]nothing":    false,
		"UserKnownHostsFile ~/kh none.d/../../kh":            true,
		"UserKnownHostsFile none":                            false,
		"UserKnownHostsFile NONE\nGlobalKnownHostsFile ~/kh": false,
		"RevokedHostKeys NONE":                               false,
		"":                                                   false,
	} {
		file := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		for _, detached := range []bool{false, true} {
			o := config.To("h", "-F", file)
			o.Detached = detached
			c, err := config.Resolve(t.Context(), o)
			require.NoError(t, err)
			var dependent *config.Error
			require.Equal(t, detached && refused, errors.As(checkSupported(c), &dependent), "%q, detached %t", text, detached)
		}
	}
}
