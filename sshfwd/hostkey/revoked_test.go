package hostkey

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/sshfwd/config"
)

// A list that cannot be used says why, as a problem of the configuration.
func TestHostKeyRevokedList(t *testing.T) {
	k := newHostKeysOfTest(t)
	for text, c := range map[string]struct {
		key  ssh.PublicKey
		line int // 0: not revoked, -1: bad
	}{
		"":                               {k.key, 0},
		" \t\n# {KEY}\n\x00{KEY}\n":      {k.key, 0},
		"{OTHER}\n":                      {k.key, 0},
		"{OTHER}\n \t{KEY} me":           {k.key, 2},
		"{CERT}\n":                       {k.key, 1},
		"{CA}\n":                         {k.cert, 1},
		"{CA}\n ":                        {k.key, 0},
		"# c\n{KEY}\n":                   {k.cert, 2},
		"{OTHER}\n\n ":                   {k.cert, 0},
		"{OTHER}\nrubbish\n{KEY}\n":      {k.key, -1},
		krlMagic + "\x00\x00\x00\x02":    {k.key, -1},
		krlMagic[:len(krlMagic)-1] + "x": {k.key, -1},
	} {
		resolved := k.config(t, "* {KEY}\n@cert-authority * {CA}\n")
		file := filepath.Join(t.TempDir(), "revoked")
		resolved.RevokedHostKeys = []string{file}
		require.NoError(t, os.WriteFile(file, []byte(k.fill(text)), 0o600))
		err := checkHostKey(t, resolved, nil, "127.0.0.1", c.key)
		var bad *config.Error
		switch {
		case c.line == 0:
			require.NoError(t, err, "%q", text)
		case c.line > 0:
			require.Equal(t, file, requireRefused(t, err, Revoked, c.line).File)
			require.Contains(t, err.Error(), "it is in RevokedHostKeys "+file)
		default:
			require.ErrorAs(t, err, &bad, "%q", text)
			require.NotEmpty(t, bad.Hint())
		}
	}
	resolved := k.config(t, "* {KEY}\n")
	resolved.RevokedHostKeys = []string{"/nonexistent"}
	require.ErrorIs(t, checkHostKey(t, resolved, nil, "127.0.0.1", k.key), os.ErrNotExist)
	resolved.RevokedHostKeys = []string{"~nobody-of-that-name/x"}
	require.Error(t, checkHostKey(t, resolved, nil, "127.0.0.1", k.key))
}
