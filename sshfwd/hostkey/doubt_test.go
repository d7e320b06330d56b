package hostkey

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/asker"
	"gpg-bridge/sshfwd/config"
)

// If it is in doubt which of the files ssh reads, a key is known only if no single file
// contradicts, and nothing is written.
func TestHostKeyInDoubtAboutTheFiles(t *testing.T) {
	k := newHostKeysOfTest(t)
	for name, c := range map[string]struct {
		first, second string
		key           ssh.PublicKey
		address       bool
		want          Reason
		noticed       bool
	}{
		"known in both":                   {first: "* {KEY}\n", second: "* {KEY}\n", want: hostKeyOK},
		"known in one":                    {second: "* {KEY}\n", want: hostKeyOK},
		"changed in the first":            {first: "* {OTHER}\n", second: "* {KEY}\n", want: Changed},
		"changed in the second":           {first: "* {KEY}\n", second: "* {OTHER}\n", want: Changed},
		"two keys in one file":            {first: "* {OTHER}\n* {KEY}\n", want: hostKeyOK},
		"revoked in one":                  {first: "@revoked * {KEY}\n", second: "* {KEY}\n", want: Revoked},
		"revoked and changed":             {first: "* {OTHER}\n", second: "@revoked * {KEY}\n", want: Revoked},
		"authority in one, another key":   {first: "@cert-authority * {CA}\n", second: "* {OTHER}\n", key: k.cert, want: Changed},
		"authority in one":                {second: "@cert-authority * {CA}\n", key: k.cert, want: hostKeyOK},
		"unknown":                         {first: "x {KEY}\n", want: hostKeyOK, noticed: true},
		"address changed in one":          {first: "[h]:2222 {KEY}\n[192.0.2.1]:2222 {KEY}\n", second: "[192.0.2.1]:2222 {OTHER}\n", address: true, want: Changed},
		"address unknown, nothing to add": {first: "[h]:2222 {KEY}\n", address: true, want: hostKeyOK, noticed: true},
	} {
		if c.key == nil {
			c.key = k.key
		}
		resolved := k.config(t, c.first)
		second := filepath.Join(t.TempDir(), "second")
		require.NoError(t, os.WriteFile(second, []byte(k.fill(c.second)), 0o600))
		resolved.UserKnownHostsFiles = append(resolved.UserKnownHostsFiles, second)
		resolved.KnownHostsInDoubt, resolved.StrictHostKeyChecking, resolved.CheckHostIP = true, config.StrictAcceptNew, c.address
		p := &asker.Script{}
		err := checkHostKey(t, resolved, p, "192.0.2.1", c.key)
		if c.want == hostKeyOK {
			require.NoError(t, err, name)
		} else {
			var refused *Error
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, c.want, refused.Reason, name)
		}
		require.Equal(t, c.noticed, len(p.Notices) > 0, name)
		written, err := os.ReadFile(resolved.UserKnownHostsFiles[0])
		require.NoError(t, err)
		require.Equal(t, k.fill(c.first), string(written), name)
	}
}

// What KnownHostsCommand says counts like a file.
func TestHostKeyInDoubtByCommand(t *testing.T) {
	k := newHostKeysOfTest(t)
	lines := parseKnownHosts([]byte(k.fill("* {OTHER}\n")), "file")
	known := newHostKeys(&config.Config{Hostname: "h", Port: 22, KnownHostsInDoubt: true}, lines)
	v, _, _ := known.with([]knownKey{{file: knownHostsCommandTag, key: k.key}}).judge(k.key)
	require.Equal(t, hostChanged, v)
	v, _, _ = known.judge(k.other)
	require.Equal(t, hostKnown, v)
}
