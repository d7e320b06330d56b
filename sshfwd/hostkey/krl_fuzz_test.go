package hostkey

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"gpg-bridge/internal/testkit/env"
	"gpg-bridge/internal/testkit/sshkeys"
)

// FuzzRevoked: whatever a RevokedHostKeys file holds, it is understood or an
// error, and gives the same result when it is asked again.
func FuzzRevoked(f *testing.F) {
	file := filepath.Join(f.TempDir(), "revoked")
	keys := []ssh.PublicKey{sshkeys.Fixed(f, 1), sshkeys.FixedCert(f, 7)}
	f.Add(sshkeys.KRLOfID("test"))
	f.Add([]byte("# comment\n" + sshkeys.Authorized(keys[0]) + " me\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(file, data, 0o600))
		for _, key := range keys {
			revoked, line, err := revokedBy(t.Context(), file, key)
			require.False(t, revoked && err != nil)
			again, lineAgain, errAgain := revokedBy(t.Context(), file, key)
			require.Equal(t, revoked, again)
			require.Equal(t, line, lineAgain)
			require.Equal(t, err == nil, errAgain == nil)
		}
	})
}

// FuzzKRL: ssh-keygen -Q finds the same keys revoked by a list that both understand. A
// list that we do not understand refuses every key. Some that ssh-keygen does not
// understand we do: an authority's key is mere bytes to us, and it knows extensions only
// since 9.4.
func FuzzKRL(f *testing.F) {
	keygen := env.Tool(f, "ssh-keygen")
	dir := f.TempDir()
	list := filepath.Join(dir, "krl")
	keys := []ssh.PublicKey{sshkeys.Fixed(f, 1), sshkeys.FixedCert(f, 7), sshkeys.FixedCert(f, 0)}
	files := []string{filepath.Join(dir, "key.pub"), filepath.Join(dir, "key-cert.pub"), filepath.Join(dir, "zero-cert.pub")}
	for i, key := range keys {
		require.NoError(f, os.WriteFile(files[i], ssh.MarshalAuthorizedKey(key), 0o600))
	}
	f.Add(sshkeys.KRLOfID("test"))
	f.Add(sshkeys.KRLOfID("x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte(krlMagic), data[min(len(data), len(krlMagic)):]...)
		require.NoError(t, os.WriteFile(list, data, 0o600))
		if _, _, err := revokedBy(t.Context(), list, keys[0]); err != nil {
			return // every key is refused
		}
		out, _ := exec.CommandContext(t.Context(), keygen, append([]string{"-Q", "-f", list}, files...)...).CombinedOutput()
		for i, key := range keys {
			revoked, _, ourErr := revokedBy(t.Context(), list, key)
			require.NoError(t, ourErr)
			if theirs := string(out); strings.Contains(theirs, files[i]+" (") {
				require.Equal(t, strings.Contains(theirs, files[i]+"): REVOKED"), revoked, "%s", theirs)
			} else {
				require.NotContains(t, theirs, "invalid argument", "serials that cannot be")
			}
		}
	})
}
