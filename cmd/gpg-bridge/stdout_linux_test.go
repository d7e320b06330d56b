package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// If nobody reads stdout, as in `gpg-bridge ssh host … | true`, nothing is said about it, and
// the exit status is still the remote command's.
func TestClosedStdoutIsAsWithSSH(t *testing.T) {
	h := newHost(t)
	for _, command := range []string{"seq 1 1000000", "trap '' PIPE; seq 1 100000 2>/dev/null; exit 0", "echo x; exit 7"} {
		run := func(ours bool) ending {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			require.NoError(t, r.Close())
			cmd := h.command(t, ours, "host", command)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			require.NoError(t, cmd.Start())
			require.NoError(t, w.Close())
			status := exitStatus(t, waitFor(t, cmd))
			require.NotContains(t, stderr.String(), "broken pipe")
			return ending{status: status, stderr: plain(stderr.String())}
		}
		require.Equal(t, run(false), run(true), command)
	}
}
