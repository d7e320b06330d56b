//go:build unix

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/sshd"
)

// Thousands of keys are more than a command of the host's, a message of ssh's and a
// command line here can hold. The laptop's gpg lists them; it has one of them.
func TestThousandsOfKeys(t *testing.T) {
	const many = 6500
	t.Parallel()
	dir := env.ShortDir(t)
	listing := filepath.Join(dir, "listing")
	shim := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *--list-keys*many) exec cat %s ;; *) exec %s \"$@\" ;; esac\n",
		listing, env.Tool(t, "gpg"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpg"), []byte(shim), 0o755))
	laptop := gpghome.ForTestWith(t, dir)
	key, err := laptop.GenerateKey(t.Context(), gpghome.KeySpec{UserID: userID})
	require.NoError(t, err)
	var text strings.Builder
	for i := range many {
		id := fmt.Sprintf("%016X", i)
		fmt.Fprintf(&text, "pub:-:255:22:%s:1700000000:::::::scESC:\nfpr:::::::::%024X%s:\nuid:-::::1700000000::%040d::name::::::::::0:\n"+
			"sig:::22:%s:1700000000:::::13x:\n", id, 0, id, i, id)
	}
	real, _, err := laptop.Gpg(t.Context(), nil, "--with-colons", "--fast-list-mode", "--list-sigs", key.Fingerprint)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(listing, append([]byte(text.String()), real...), 0o600))

	host := sshd.NewAccount(t, sshd.AccountConfig{})
	s := &scene{laptop: laptop, key: key, host: host, sshd: sshd.Start(t, sshd.Config{Account: host})}
	p := s.bridge(t, "--keys", "many")
	p.waitFor(t, &p.stderr, fmt.Sprintf("%d public keys could not be imported on the host", many))
	require.True(t, slices.Contains(s.publicKeys(t), key.Fingerprint), "the one that is here is there")
	s.sign(t)
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t).code)

	r := s.run(t, "--keys", "many", "host", "echo on the host; exit 7")
	require.Equal(t, 7, r.code, "%s", r.stderr)
	require.Equal(t, "on the host\n", r.stdout)
}
