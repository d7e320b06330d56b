//go:build unix

package agentside

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSecretOnAWindowsDrive: 0777 is no reason to refuse it there, another owner is.
func TestSecretOnAWindowsDrive(t *testing.T) {
	t.Parallel()
	there, elsewhere := func() bool { return true }, func() bool { return false }
	for _, mode := range []os.FileMode{0o600, 0o777, 0o755, 0o644} {
		require.NoError(t, judgeSecret(true, mode, there), "%v", mode)
		require.ErrorIs(t, judgeSecret(false, mode, there), errForeignFile, "%v", mode)
	}
	require.NoError(t, judgeSecret(true, 0o600, elsewhere))
	require.ErrorIs(t, judgeSecret(true, 0o777, elsewhere), errOpenFile)
}
