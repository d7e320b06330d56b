package house

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/testkit/env"
)

// Each target that needs Go says in one line where it is not, and what to do.
func TestMakeWithoutGo(t *testing.T) {
	path := t.TempDir() // a system without Go
	require.NoError(t, os.Symlink(env.Tool(t, "sh"), filepath.Join(path, "sh")))
	for _, target := range []string{"build", "demo", "test", "bench", "stress", "fuzz", "mutate"} {
		command := exec.Command(env.Tool(t, "make"), "-s", "-C", "../..", target)
		command.Env = []string{"PATH=" + path}
		out, err := command.CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, `^go is not in PATH: install Go [^\n]* make GO=[^\n]*\nmake: \*\*\* [^\n]*\n$`, string(out), target)
	}
}
