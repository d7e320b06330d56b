package background

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gpg-bridge/internal/share"
	"gpg-bridge/internal/testkit/env"
)

// TestLogIsBounded: and the newest messages are kept.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	log := newLog(file, "")
	line := []byte(strings.Repeat("x", 1000) + "\n")
	for range 2 * maxLog / len(line) {
		n, err := log.Write(line)
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	_, err = log.Write([]byte("last\n"))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxLog)
	require.NotContains(t, string(text), "\x00")
	require.True(t, strings.HasSuffix(string(text), " last\n"))
	again := newLog(file, "")
	require.Equal(t, int64(len(text)), again.size)
}

// The log is emptied when it is full, also for others who have it open.
func TestLogBeginsAnew(t *testing.T) {
	for _, name := range []string{"XDG_RUNTIME_DIR", "LocalAppData"} {
		t.Setenv(name, env.ShortDir(t))
	}
	const id = "0123456789abcdef0123"
	dir, err := share.Open()
	require.NoError(t, err)
	defer dir.Close()
	for name, where := range map[string]string{"the target's": dir.LogPath(id), "a service manager's": filepath.Join(t.TempDir(), "log")} {
		out, err := os.OpenFile(where, os.O_WRONLY|os.O_CREATE, 0o600)
		isTargets := where == dir.LogPath(id)
		if isTargets {
			require.NoError(t, out.Close())
			out, err = dir.Log(id)
		}
		require.NoError(t, err)
		l := newLog(out, id)
		if isTargets { // as on Windows, a handle that appends cannot shorten the file
			handle, err := os.Open(where)
			require.NoError(t, err)
			defer handle.Close()
			l.file = handle
		}
		line := strings.Repeat("x", 1000) + "\n"
		for i := range 2*maxLog/len(line) + 10 {
			n, err := fmt.Fprintf(l, "%06d %s", i, line)
			require.NoError(t, err, name)
			require.Equal(t, 7+len(line), n)
		}
		_, err = fmt.Fprint(l, "the last\n")
		require.NoError(t, err)
		require.NoError(t, out.Close())
		data, err := os.ReadFile(where)
		require.NoError(t, err)
		require.Less(t, len(bytes.TrimLeft(data, "\x00")), maxLog, name)
		require.True(t, bytes.HasSuffix(data, []byte("the last\n")), name)
		require.NotContains(t, string(data), " 000001 ", name)
	}
}
