//go:build unix

package hostkey

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A FIFO instead of the file blocks nothing, and another process with the lock no longer
// than the connection may take.
func TestKnownHostIsNotAdded(t *testing.T) {
	k := newHostKeysOfTest(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.ErrorContains(t, appendKnownHost(t.Context(), fifo, knownHost{name: "h", key: k.key}, false), "FIFO")

	file := k.config(t, "").UserKnownHostsFiles[0]
	held, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	defer held.Close()
	require.NoError(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, appendKnownHost(ctx, file, knownHost{name: "h", key: k.key}, false), "cannot lock")
	require.Empty(t, mustRead(t, file))
	require.Error(t, appendKnownHost(t.Context(), filepath.Join(file, "x"), knownHost{name: "h", key: k.key}, false))
}
