package agentside_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/agentside"
	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/gpghome"
)

const absent = "0000000000000000000000000000000000000001"

func newKey(t *testing.T, h *gpghome.Home, name string) gpghome.Key {
	t.Helper()
	key, err := h.GenerateKey(t.Context(), gpghome.KeySpec{UserID: name + " <" + strings.ToLower(name) + "@example.org>"})
	require.NoError(t, err)
	return key
}

func TestSecretKeysAreThePrimaryOnesWithOwnertrust(t *testing.T) {
	h, other := gpghome.ForTest(t), gpghome.ForTest(t)
	alice, carol := newKey(t, h, "Alice"), newKey(t, other, "Carol")
	require.NoError(t, h.ImportPublic(t.Context(), other))
	keyring := agentside.Keyring{Env: h.Env()}

	keys, err := keyring.SecretKeys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []agentside.Key{{Fingerprint: alice.Fingerprint, OwnerTrust: 6}}, unsigned(keys))
	require.Len(t, keys[0].SelfSignatures, 2, "of the user ID and the subkey")

	keys, err = keyring.PublicKeys(t.Context(), []string{"carol@example.org", alice.Fingerprint, carol.Fingerprint})
	require.NoError(t, err)
	require.Equal(t, []agentside.Key{{Fingerprint: carol.Fingerprint}, {Fingerprint: alice.Fingerprint, OwnerTrust: 6}}, unsigned(keys))
}

// unsigned are the keys without their signatures.
func unsigned(keys []agentside.Key) []agentside.Key {
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].SelfSignatures = nil
	}
	return keys
}

func TestPublicKeysOfThisProcess(t *testing.T) {
	h := gpghome.ForTest(t)
	alice := newKey(t, h, "Alice")
	t.Setenv("GNUPGHOME", h.Dir())
	keys, err := agentside.Keyring{}.PublicKeys(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	out, err := agentside.Keyring{}.ExportPublic(t.Context(), []string{alice.Fingerprint})
	require.NoError(t, err)
	require.NotEmpty(t, out)
}

func TestPublicKeysNamesTheOneThatIsMissing(t *testing.T) {
	h := gpghome.ForTest(t)
	alice := newKey(t, h, "Alice")
	for _, name := range []string{absent, "nobody@example.org", "--version"} {
		_, err := agentside.Keyring{Env: h.Env()}.PublicKeys(t.Context(), []string{alice.Fingerprint, name})
		var missing *agentside.KeyError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, name, missing.Name)
		require.NotEmpty(t, missing.Hint())
	}
}

func TestNoKeysIsNoError(t *testing.T) {
	keys, err := agentside.Keyring{Env: gpghome.ForTest(t).Env()}.PublicKeys(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, keys)
}

func TestExportPublicIsMinimal(t *testing.T) {
	h, signer := gpghome.ForTest(t), gpghome.ForTest(t)
	alice := newKey(t, h, "Alice")
	newKey(t, signer, "Signer")
	require.NoError(t, signer.ImportPublic(t.Context(), h))
	_, _, err := signer.Gpg(t.Context(), nil, "--yes", "--quick-sign-key", alice.Fingerprint)
	require.NoError(t, err)
	require.NoError(t, h.ImportPublic(t.Context(), signer, alice.Fingerprint))

	whole, _, err := h.Gpg(t.Context(), nil, "--armor", "--export", alice.Fingerprint)
	require.NoError(t, err)
	keyring := agentside.Keyring{Env: h.Env()}
	minimal, err := keyring.ExportPublic(t.Context(), []string{alice.Fingerprint, absent})
	require.NoError(t, err)
	require.Less(t, len(minimal), len(whole), "without the signature of another")
	require.NotEmpty(t, minimal)

	for _, fingerprints := range [][]string{nil, {absent}, {"alice"}, {"--version"}} {
		_, err := keyring.ExportPublic(t.Context(), fingerprints)
		require.Error(t, err)
	}
}

// TestKeyringIsBounded: a gpg that prints without end is not held in memory.
func TestKeyringIsBounded(t *testing.T) {
	env.Tool(t, "sh")
	dir := t.TempDir()
	script := "#!/bin/sh\nhead -c 5000000 /dev/zero\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gpg"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	_, err := agentside.Keyring{}.ExportPublic(t.Context(), []string{absent})
	require.ErrorContains(t, err, "4 MiB")
}

func TestKeyringWithoutGpg(t *testing.T) {
	_, err := agentside.Keyring{Gpg: "/nonexistent/gpg"}.PublicKeys(t.Context(), nil)
	var hinted interface{ Hint() string }
	require.ErrorAs(t, err, &hinted)
	require.Contains(t, hinted.Hint(), "--keys none")
}
