package statedoc

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated files anew")

// Check compares want with a file's content, or writes it there when the test
// was given -update.
func Check(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(got), want, "%s does not say what the table does; run with -update and review it", path)
}
