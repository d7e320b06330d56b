package sshfwd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testenv"
)

// FuzzRevoked: whatever a RevokedHostKeys file holds, it is understood or an
// error, and says of the same key the same twice.
func FuzzRevoked(f *testing.F) {
	file := filepath.Join(f.TempDir(), "revoked")
	keys := []ssh.PublicKey{fuzzKey(f, 1), fuzzCert(f, 7)}
	f.Add(krlOfID("test"))
	f.Add([]byte("# comment\n" + authorized(keys[0]) + " me\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		for _, key := range keys {
			revoked, line, err := revokedBy(file, key)
			require.False(t, revoked && err != nil)
			again, lineAgain, errAgain := revokedBy(file, key)
			require.Equal(t, revoked, again)
			require.Equal(t, line, lineAgain)
			require.Equal(t, err == nil, errAgain == nil)
		}
	})
}

// FuzzKRL: of a list that both understand, ssh-keygen -Q says that the same keys
// are revoked. One that we do not understand refuses every key; some that it does
// not we read: an authority's key is no more than bytes to us, and it knows
// extensions only since 9.4.
func FuzzKRL(f *testing.F) {
	keygen := testenv.Tool(f, "ssh-keygen")
	dir := f.TempDir()
	list := filepath.Join(dir, "krl")
	keys := []ssh.PublicKey{fuzzKey(f, 1), fuzzCert(f, 7), fuzzCert(f, 0)}
	files := []string{filepath.Join(dir, "key.pub"), filepath.Join(dir, "key-cert.pub"), filepath.Join(dir, "zero-cert.pub")}
	for i, key := range keys {
		require.NoError(f, os.WriteFile(files[i], ssh.MarshalAuthorizedKey(key), 0o600))
	}
	f.Add(krlOfID("test"))
	f.Add(krlOfID("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte(krlMagic), data[min(len(data), len(krlMagic)):]...)
		require.NoError(t, os.WriteFile(list, data, 0o600))
		if _, _, err := revokedBy(list, keys[0]); err != nil {
			return // every key is refused
		}
		out, _ := exec.CommandContext(t.Context(), keygen, append([]string{"-Q", "-f", list}, files...)...).CombinedOutput()
		for i, key := range keys {
			revoked, _, ourErr := revokedBy(list, key)
			require.NoError(t, ourErr)
			if theirs := string(out); strings.Contains(theirs, files[i]+" (") {
				require.Equal(t, strings.Contains(theirs, files[i]+"): REVOKED"), revoked, "%s", theirs)
			} else {
				require.NotContains(t, theirs, "invalid argument", "serials that cannot be")
			}
		}
	})
}
