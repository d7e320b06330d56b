package prepare_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/gpghome"
	"gpg-bridge/internal/testkit/release"
	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/remoteside/prepare"
)

// A refresh is a key on a laptop, and a host that has it.
type refresh struct {
	*remote
	home     *gpghome.Home
	key      string
	exported int
}

func newRefresh(t *testing.T, programs string, inside []string) *refresh {
	t.Helper()
	f := &refresh{
		remote: newRemote(t, sshd.AccountConfig{}, sshd.Config{Inside: inside}),
		home:   gpghome.ForTestWith(t, programs),
	}
	key, err := f.home.GenerateKey(t.Context(), gpghome.KeySpec{UserID: "Alice <alice@example.org>"})
	require.NoError(t, err)
	f.key = key.Fingerprint
	return f
}

// gpg runs the laptop's gpg, for keys without a passphrase.
func (f *refresh) gpg(t *testing.T, args ...string) {
	t.Helper()
	gpgAt(t, f.home, "", args...)
}

func gpgAt(t *testing.T, home *gpghome.Home, input string, args ...string) string {
	t.Helper()
	args = append([]string{"--quiet", "--yes", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)
	out, _, err := home.Gpg(t.Context(), strings.NewReader(input), args...)
	require.NoError(t, err)
	return string(out)
}

// prepared is what the host lacked of the laptop's keys, which it then has.
func (f *refresh) prepared(t *testing.T) *prepare.Preparation {
	t.Helper()
	keyring := agentside.Keyring{Env: f.home.Env()}
	keys, err := keyring.SecretKeys(t.Context())
	require.NoError(t, err)
	require.Len(t, keys, 1)
	return f.prepare(t, prepare.Options{
		Evict:  true,
		Wanted: []prepare.Key{prepare.Key(keys[0])},
		Export: func(ctx context.Context, fingerprints []string) ([]byte, error) {
			f.exported++
			return keyring.ExportPublic(ctx, fingerprints)
		},
	})
}

// facts are what matters of a listed key: what is there, when it expires, what it
// is for and whether it is revoked.
func facts(listing string) []string {
	var found []string
	for line := range strings.Lines(listing) {
		fields := strings.Split(line, ":")
		switch fields[0] {
		case "pub", "sub":
			found = append(found, strings.Join([]string{fields[0], fields[4], fields[6], strings.ToLower(fields[11])}, ":")+revoked(fields))
		case "uid":
			found = append(found, "uid:"+fields[9]+revoked(fields))
		}
	}
	slices.Sort(found)
	return found
}

func revoked(fields []string) string {
	if fields[1] == "r" {
		return " revoked"
	}
	return ""
}

// requireSame: the host has what the user has.
func (f *refresh) requireSame(t *testing.T) {
	t.Helper()
	here := gpgAt(t, f.home, "", "--with-colons", "--list-keys", f.key)
	there := f.Run0(t, "gpg --batch --no-autostart --with-colons --trust-model always --list-keys "+f.key+" 2>/dev/null")
	require.Equal(t, facts(here), facts(there))
}

// Whatever changes about a key here is there after the next preparation, and costs
// an import once.
func TestPrepareRefreshesKeys(t *testing.T) {
	suite := release.Suites()[0]
	for name, versions := range map[string]struct{ laptop, host bool }{
		"same": {}, "newer host": {host: true}, "newer laptop": {laptop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var programs string
			var inside []string
			if versions.laptop {
				programs = release.GnuPG(t, suite)
			}
			if versions.host {
				inside = release.Inside(t, suite)
			}
			f := newRefresh(t, programs, inside)
			require.Equal(t, []string{f.key}, f.prepared(t).Missing)
			f.requireSame(t)
			for _, change := range f.changes(t) {
				change.make(t)
				before := f.exported
				require.Equal(t, []string{f.key}, f.prepared(t).Stale, change.name)
				f.requireSame(t)
				require.Empty(t, f.prepared(t).Stale, "%s: again", change.name)
				require.Equal(t, before+1, f.exported, change.name)
			}
		})
	}
}

type keyChange struct {
	name string
	make func(*testing.T)
}

func (f *refresh) changes(t *testing.T) []keyChange {
	edit := func(commands string) func(*testing.T) {
		return func(t *testing.T) { gpgAt(t, f.home, commands, "--command-fd", "0", "--edit-key", f.key) }
	}
	return []keyChange{
		{"extended", func(t *testing.T) {
			f.gpg(t, "--quick-set-expire", f.key, "2y")
			f.gpg(t, "--quick-set-expire", f.key, "1y", "*")
		}},
		{"subkeys", func(t *testing.T) {
			f.gpg(t, "--quick-add-key", f.key, "ed25519", "sign", "never")
			f.gpg(t, "--quick-add-key", f.key, "cv25519", "encr", "1y")
		}},
		{"user IDs", func(t *testing.T) {
			f.gpg(t, "--quick-add-uid", f.key, "Alice <alice@example.com>")
			f.gpg(t, "--quick-revoke-uid", f.key, "Alice <alice@example.org>")
		}},
		{"subkey revoked", edit("key 1\nrevkey\ny\n0\n\ny\nsave\n")},
		{"key revoked", func(t *testing.T) {
			path := filepath.Join(f.home.Dir(), "openpgp-revocs.d", f.key+".rev")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			gpgAt(t, f.home, strings.Replace(string(text), ":-----BEGIN", "-----BEGIN", 1), "--import")
		}},
	}
}

// A key that is newer there, or has more, is left alone, and so is its trust.
func TestPrepareLeavesNewerKeys(t *testing.T) {
	f := newRefresh(t, "", nil)
	f.prepared(t)
	other := gpghome.ForTest(t)
	secret := gpgAt(t, f.home, "", "--armor", "--export-secret-keys", f.key)
	gpgAt(t, other, secret, "--import")
	gpgAt(t, other, "", "--quick-set-expire", f.key, "3y")
	gpgAt(t, other, "", "--quick-add-key", f.key, "ed25519", "sign", "never")
	f.WriteFile(t, "newer", []byte(gpgAt(t, other, "", "--armor", "--export", f.key)), 0o600)
	f.Run0(t, "gpg --batch --no-autostart --import newer 2>&1; echo "+f.key+":4: | gpg --batch --no-autostart --import-ownertrust 2>&1")
	listing := "gpg --batch --no-autostart --with-colons --list-sigs 2>/dev/null | grep -v ^tru"
	before := f.Run0(t, listing)
	p := f.prepared(t)
	require.Empty(t, p.Missing)
	require.Empty(t, p.Stale)
	require.Equal(t, 1, f.exported)
	require.Equal(t, before, f.Run0(t, listing))

	f.gpg(t, "--quick-add-key", f.key, "cv25519", "encr", "1y")
	require.Equal(t, []string{f.key}, f.prepared(t).Stale)
	require.Empty(t, f.prepared(t).Stale)
	require.Contains(t, f.Run0(t, "gpg --batch --no-autostart --export-ownertrust"), f.key+":4:")
}
